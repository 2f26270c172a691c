"""Importing a bundle: all of it or nothing, and only what was shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import DataError, IntegrityError, OperationalError, router, transaction
from django.utils.translation import gettext as _

from mcp_app.catalog.registry import Registry
from mcp_app.catalog.row_loader import digests_of
from mcp_app.models import Blob, DefinitionRow, DefinitionVersion, PublishedRow, Server
from mcp_app.models.transactions import is_conflict
from mcp_app.publishing.bundle.choices import chosen_in, with_primary_keys
from mcp_app.publishing.bundle.comparing import (
    ComparedEntry,
    Comparison,
    Outcome,
    compare,
)
from mcp_app.publishing.bundle.format import (
    CHOICES,
    Bundle,
    BundleRefused,
    Identity,
    PublishedContent,
    kind_of,
)
from mcp_app.publishing.findings import store_findings
from mcp_app.publishing.publication import OutOfDate, overtaken_error


@dataclass(frozen=True, slots=True)
class ImportedRow:
    """A row that was written; `version` is None where nothing was published."""

    row: PublishedRow
    is_new: bool
    is_saved: bool
    version: DefinitionVersion | None
    sentence: str
    """What was done, for the history."""


def apply(
    bundle: Bundle,
    registry: Registry,
    *,
    author: AbstractBaseUser | None,
    looked_at: str,
    publish: bool = False,
    origin: str = "",
    allowed: Callable[[Comparison], None] = lambda comparison: None,
) -> list[ImportedRow]:
    """Import a bundle as it was compared: all or nothing, in one transaction.

    `looked_at` is the comparison's digest; where it is another one by now, `OutOfDate`
    is raised, and `BundleRefused` where an entry cannot be imported.  `allowed` may
    refuse by raising, before anything is written.  `origin` names the file for people.
    """
    try:
        with transaction.atomic(using=router.db_for_write(Server)):
            comparison = compare(bundle, registry, lock=True)
            if comparison.looked_at != looked_at:
                raise OutOfDate(
                    _(
                        "Something at this site has changed since you checked the file."
                        " Check it again."
                    )
                )
            allowed(comparison)
            check(comparison, publish=publish)
            return _Importer(comparison, registry, author, publish, origin).imported()
    except IntegrityError as error:
        raise OutOfDate(
            _(
                "Meanwhile, somebody has made an entry that this file would make, too."
                " Check the file again."
            )
        ) from error
    except (DataError, OperationalError) as error:
        if is_conflict(error):
            raise overtaken_error() from error
        # Databases have limits of their own, such as what one statement may bring.
        said = _("The database refused the import. Nothing was imported: %(error)s")
        raise BundleRefused([said % {"error": error}]) from error


def check(comparison: Comparison, *, publish: bool) -> None:
    """Raise `BundleRefused` with all that stands in the way."""
    cannot = comparison.having(Outcome.CANNOT, publish=publish)
    said = [
        _("%(entry)s: %(problem)s") % {"entry": each.entry, "problem": problem}
        for each in cannot
        for problem in each.obstacles(publish=publish)
    ]
    if said:
        raise BundleRefused(said)


class _Importer:
    def __init__(
        self,
        comparison: Comparison,
        registry: Registry,
        author: AbstractBaseUser | None,
        publish: bool,
        origin: str,
    ) -> None:
        self._comparison = comparison
        self._registry = registry
        self._author = author
        self._publish = publish
        self._origin = origin or comparison.bundle.fingerprint
        self._keys: dict[Identity, int] = dict(comparison.primary_keys)

    def imported(self) -> list[ImportedRow]:
        touched = self._comparison.touched(publish=self._publish)
        self._keep_uploads(touched)
        # Servers choose among the definitions, which must be there.
        definitions = [each for each in touched if each.entry.model is not Server]
        servers = [each for each in touched if each.entry.model is Server]
        written = [self._written(each) for each in (*definitions, *servers)]
        for each in written:
            if isinstance(each.row, DefinitionRow):
                store_findings(each.row, self._registry)
        return written

    def _keep_uploads(self, touched: Sequence[ComparedEntry]) -> None:
        contents = [content for each in touched for content in each.entry.contents()]
        named = {name for content in contents for name in digests_of(content)}
        for name in sorted(named):
            upload = self._comparison.bundle.uploads[name]
            Blob.objects.keep(upload.content, upload.media_type)

    def _written(self, compared: ComparedEntry) -> ImportedRow:
        row = compared.row
        if compared.is_saved:
            self._save(compared)
        self._keys[compared.entry.identity] = row.pk
        version = self._published(compared) if self._publish else None
        return ImportedRow(
            row,
            compared.is_new,
            compared.is_saved,
            version,
            " ".join(self._said(compared, version)),
        )

    def _save(self, compared: ComparedEntry) -> None:
        row = compared.row
        if isinstance(row, DefinitionRow) and self._author is not None:
            row.updated_by_id = self._author.pk
        row.save()
        if isinstance(row, Server) and row.selection == Server.Selection.CHOSEN:
            self._choose(row, compared)

    def _choose(self, server: Server, compared: ComparedEntry) -> None:
        chosen: dict[str, list[int]] = {name: [] for name in CHOICES}
        lists = {kind_of(model): name for name, model in CHOICES.items()}
        for kind, key in chosen_in(compared.entry.working):
            chosen[lists[kind]].append(self._keys[kind, key])
        for name, keys in chosen.items():
            getattr(server, name).set(keys)

    def _published(self, compared: ComparedEntry) -> DefinitionVersion | None:
        publication = compared.publication
        if publication is None:
            return None
        row = compared.row
        content = with_primary_keys(publication.content, self._keys)
        [version] = row.rows().publish_contents(
            {row: content}, author=self._author, note=self._note(compared)
        )
        return version

    def _note(self, compared: ComparedEntry) -> str:
        published = cast("PublishedContent", compared.entry.published)
        said = _("Imported from %(origin)s: version %(number)d by %(author)s. %(note)s")
        shown = {
            "origin": self._origin,
            "number": published.number,
            "author": published.author or _("a command"),
            "note": published.note,
        }
        return (said % shown).strip()

    def _said(
        self, compared: ComparedEntry, version: DefinitionVersion | None
    ) -> Iterator[str]:
        origin = {"origin": self._origin}
        if compared.is_new:
            yield _("Imported from %(origin)s.") % origin
        elif compared.is_saved:
            yield _("The working copy was imported from %(origin)s.") % origin
        if version is not None:
            said = _("Published version %(number)d, imported from %(origin)s.")
            yield said % {**origin, "number": version.number}
