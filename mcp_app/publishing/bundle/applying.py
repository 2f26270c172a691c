"""Importing a bundle: all of it or nothing, and only what was shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import DataError, IntegrityError, OperationalError, router, transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.catalog.registry import Registry
from mcp_app.catalog.row_loader import digests_of
from mcp_app.interface.rules import visible
from mcp_app.models import Blob, DefinitionRow, DefinitionVersion, PublishedRow, Server
from mcp_app.models.transactions import is_busy, is_conflict
from mcp_app.models.versions import PublishedRows
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.jsonrpc import pretty_text
from mcp_app.publishing.bundle.candidates import chosen_in, with_primary_keys
from mcp_app.publishing.bundle.comparing import (
    ComparedEntry,
    Comparison,
    Outcome,
    compare_bundle,
)
from mcp_app.publishing.bundle.format import (
    CHOICES,
    Bundle,
    BundleConflict,
    BundleRefused,
    Identity,
    PublishedContent,
    kind_of_model,
)
from mcp_app.publishing.differences import Difference, common_start
from mcp_app.publishing.publication import OutOfDate, overtaken_error
from mcp_app.publishing.rights import lets_others, runs_another
from mcp_app.publishing.row_findings import store_findings

# -- rights ----------------------------------------------------------------------------
# Which rights of the product an import needs, beside the one to import.


def needed_rights(
    comparison: Comparison, *, publish: bool
) -> dict[str, list[ComparedEntry]]:
    """Return the rights that a person needs, each with the entries that need it.

    `behind` is for changes of what a definition runs, `grant` for changes of who may
    use something.  An entry that changes nothing needs no right.
    """
    rights: dict[str, list[ComparedEntry]] = {}
    for compared in comparison.entries:
        for right in _rights_of_entry(compared, publish=publish):
            rights.setdefault(right, []).append(compared)
    return rights


def _rights_of_entry(compared: ComparedEntry, *, publish: bool) -> Iterator[str]:
    changes = list(_content_changes(compared, publish=publish))
    for right, is_needed in (("behind", runs_another), ("grant", lets_others)):
        if any(
            all(is_needed(before, after) for before in befores)
            for befores, after in changes
        ):
            yield right
    if publish and compared.publication is not None:
        yield "publish"


def _content_changes(
    compared: ComparedEntry, *, publish: bool
) -> Iterator[tuple[Sequence[JsonObject], JsonObject]]:
    """Yield earlier contents and a new one, which needs no right if it is like one."""
    entry = compared.entry
    after = dict(entry.working)
    befores = [compared.before]
    if entry.model is Server:
        after.update(entry.demands, access=list(entry.access), listed=entry.listed)
        if compared.is_new:
            befores.append({"access": list(Server().access_names)})
    yield befores, after
    if publish and compared.publication is not None:
        served = compared.row.published
        # A person with the right put it into the working copy: it may be published.
        befores = [compared.before]
        if served is not None:
            befores.append(served.read())
        yield befores, compared.publication.content


# -- applying --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ImportedRow:
    """A row that was written; `version` is None if nothing was published."""

    row: PublishedRow
    is_new: bool
    is_saved: bool
    version: DefinitionVersion | None
    sentence: str
    """What was done, for the history."""


def import_bundle(
    bundle: Bundle,
    registry: Registry,
    *,
    author: AbstractBaseUser | None,
    looked_at: str | None,
    publish: bool = False,
    origin: str = "",
    allowed: Callable[[Comparison], None] = lambda comparison: None,
) -> list[ImportedRow]:
    """Import a bundle as it was compared: all or nothing, in one transaction.

    `looked_at` is the comparison's digest; if it has changed, `OutOfDate` is raised.
    Without it, `BundleConflict` is raised if work would be overwritten.
    `BundleRefused` is raised if an entry cannot be imported.  `allowed` may refuse by
    raising, before anything is written.  `origin` names the file for people.
    """
    try:
        with transaction.atomic(using=router.db_for_write(Server)):
            comparison = compare_bundle(bundle, registry, lock=True)
            if looked_at not in (None, comparison.looked_at):
                raise OutOfDate(
                    _(
                        "The file, or something at this site, has changed since you"
                        " checked it. Check it again."
                    )
                )
            allowed(comparison)
            overwrite = looked_at is not None
            check_importable(comparison, publish=publish, overwrite=overwrite)
            keys = dict(comparison.primary_keys)
            origin = origin or bundle.fingerprint
            importer = _Importer(comparison, registry, author, publish, origin, keys)
            return importer.import_all()
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
        if is_busy(error):
            raise
        # Databases have limits of their own, such as the size of a statement.
        message = _("The database refused the import. Nothing was imported: %(error)s")
        raise BundleRefused([message % {"error": error}]) from error


def check_importable(
    comparison: Comparison, *, publish: bool, overwrite: bool = True
) -> None:
    """Raise `BundleRefused` with all reasons against the import.

    `overwrite` says that somebody has looked at the conflicts.
    """
    text = _("%(entry)s: %(problem)s")
    obstacles = [
        text % {"entry": entry.entry, "problem": problem}
        for entry in comparison.entries
        for problem in entry.obstacles(publish=publish)
    ]
    conflicts = [
        text % {"entry": each.entry, "problem": conflict}
        for each in (() if overwrite else comparison.entries)
        for conflict in each.conflicts
    ]
    if obstacles:
        raise BundleRefused([*obstacles, *conflicts])
    if conflicts:
        raise BundleConflict(conflicts)


@dataclass(frozen=True, slots=True)
class _Importer:
    comparison: Comparison
    registry: Registry
    author: AbstractBaseUser | None
    publish: bool
    origin: str
    keys: dict[Identity, int]
    """The primary keys of rows; each row that is written adds its own."""

    def import_all(self) -> list[ImportedRow]:
        touched = self.comparison.entries_to_write(publish=self.publish)
        self._keep_uploads(touched)
        # Servers choose among the definitions, which must be there.
        definitions = [each for each in touched if each.entry.model is not Server]
        servers = [each for each in touched if each.entry.model is Server]
        for each in (*definitions, *servers):
            if each.is_saved:
                self._save_working_copy(each)
            self.keys[each.entry.identity] = each.row.pk
        versions = self._publish_all(touched) if self.publish else {}
        for definition in definitions:
            if isinstance(definition.row, DefinitionRow):
                store_findings(definition.row, self.registry)
        return [
            self._imported_row(each, versions.get(each.row))
            for each in (*definitions, *servers)
        ]

    def _keep_uploads(self, touched: Sequence[ComparedEntry]) -> None:
        digests = {
            name
            for each in touched
            for content in each.entry.all_contents()
            for name in digests_of(content)
        }
        for name in sorted(digests):
            upload = self.comparison.bundle.uploads[name]
            Blob.objects.keep(upload.content, upload.media_type)

    def _imported_row(
        self, compared: ComparedEntry, version: DefinitionVersion | None
    ) -> ImportedRow:
        return ImportedRow(
            compared.row,
            compared.is_new,
            compared.is_saved,
            version,
            " ".join(self._history_sentences(compared, version)),
        )

    def _save_working_copy(self, compared: ComparedEntry) -> None:
        row = compared.row
        if isinstance(row, DefinitionRow) and self.author is not None:
            row.updated_by_id = self.author.pk
        row.save()
        if isinstance(row, Server) and row.selection == Server.Selection.CHOSEN:
            self._set_choices(row, compared)

    def _set_choices(self, server: Server, compared: ComparedEntry) -> None:
        chosen: dict[str, list[int]] = {name: [] for name in CHOICES}
        lists = {kind_of_model(model): name for name, model in CHOICES.items()}
        for kind, key in chosen_in(compared.entry.working):
            chosen[lists[kind]].append(self.keys[kind, key])
        for name, keys in chosen.items():
            getattr(server, name).set(keys)

    def _publish_all(
        self, touched: Sequence[ComparedEntry]
    ) -> dict[PublishedRow, DefinitionVersion]:
        """Publish rows that have the same kind and the same note at once."""
        groups: dict[tuple[type[PublishedRow], str], dict[Any, JsonObject]] = {}
        for each in touched:
            if each.publication is not None:
                content = with_primary_keys(each.publication.content, self.keys)
                group = groups.setdefault((each.entry.model, self._note(each)), {})
                group[each.row] = content
        versions: dict[PublishedRow, DefinitionVersion] = {}
        for (model, note), contents in groups.items():
            rows: PublishedRows[Any] = model.rows()
            made = rows.publish_contents(contents, author=self.author, note=note)
            versions.update(zip(contents, made, strict=True))
        return versions

    def _note(self, compared: ComparedEntry) -> str:
        published = cast("PublishedContent", compared.entry.published)
        if not published.number:
            return _("Imported from %(origin)s.") % {"origin": self.origin}
        message = _(
            "Imported from %(origin)s: version %(number)d by %(author)s. %(note)s"
        )
        details = {
            "origin": self.origin,
            "number": published.number,
            "author": published.author or _("a command"),
            "note": published.note,
        }
        return (message % details).strip()

    def _history_sentences(
        self, compared: ComparedEntry, version: DefinitionVersion | None
    ) -> Iterator[str]:
        origin = {"origin": self.origin}
        if compared.is_new:
            yield _("Imported from %(origin)s.") % origin
        elif compared.is_saved:
            yield _("The working copy was imported from %(origin)s.") % origin
        if version is not None:
            message = _("Published version %(number)d, imported from %(origin)s.")
            yield message % {**origin, "number": version.number}


# -- report ----------------------------------------------------------------------------
# What importing would do, in lines of text.

MAX_VALUE_LENGTH = 200
"""Characters of a value that a line shows."""


def outcome_counts(comparison: Comparison, *, publish: bool) -> str:
    """Return how many entries there are of each outcome."""
    numbers = {
        outcome: len(comparison.entries_with_outcome(outcome, publish=publish))
        for outcome in Outcome
    }
    parts = [
        _("%(count)d new") % {"count": numbers[Outcome.NEW]},
        _("%(count)d changed") % {"count": numbers[Outcome.CHANGED]},
        _("%(count)d the same") % {"count": numbers[Outcome.SAME]},
        _("%(count)d not in the file (unchanged)") % {"count": comparison.only_here},
    ]
    if numbers[Outcome.CANNOT]:
        count = numbers[Outcome.CANNOT]
        parts.append(_("%(count)d cannot be imported") % {"count": count})
    if count := sum(bool(entry.conflicts) for entry in comparison.entries):
        parts.append(_("%(count)d in conflict") % {"count": count})
    return " · ".join(parts)


def report_lines(comparison: Comparison, *, publish: bool) -> Iterator[str]:
    """Yield the differences entry by entry, and at the end the counts."""
    for compared in comparison.entries:
        if compared.outcome(publish=publish) != Outcome.SAME:
            yield from entry_lines(compared, publish=publish)
    yield outcome_counts(comparison, publish=publish)


def entry_lines(compared: ComparedEntry, *, publish: bool) -> Iterator[str]:
    """Yield what becomes of an entry that differs, and why."""
    headings = {
        Outcome.NEW: _("New"),
        Outcome.CHANGED: _("Changed"),
        Outcome.CANNOT: _("Impossible"),
    }
    heading = headings[compared.outcome(publish=publish)]
    yield f"{heading}: {visible(str(compared.entry))}"
    for problem in compared.obstacles(publish=publish):
        yield "  " + _("Impossible: %(problem)s") % {"problem": problem}
    yield from map(_difference, compared.differences)
    if publish:
        yield from _publication_lines(compared)
    yield from _entry_notes(compared)


def _publication_lines(compared: ComparedEntry) -> Iterator[str]:
    publication = compared.publication
    if publication is None:
        return
    count = len(publication.differences)
    yield "  " + ngettext(
        "Published: %(count)d difference from what clients see.",
        "Published: %(count)d differences from what clients see.",
        count,
    ) % {"count": count}
    if publication.differences != compared.differences:
        yield from map(_difference, publication.differences)
    if publication.breaks:
        sentence = _("Calls that work now will fail: %(which)s.")
        yield "  " + sentence % {"which": ", ".join(publication.breaks)}


def _entry_notes(compared: ComparedEntry) -> Iterator[str]:
    """Yield warnings, which do not prevent an import."""
    for conflict in compared.conflicts:
        yield "  " + _("Conflict: %(conflict)s") % {"conflict": conflict}
    if compared.is_vanished:
        yield "  " + _("Broken here: the code does not declare it.")
        return
    if compared.is_left_unpublished:
        message = _(
            "It is not published here, and stays unpublished until you publish it"
            " yourself."
        )
        yield "  " + message
    for finding in compared.judged.to_fix:
        message = _("Must be fixed before publishing: %(message)s")
        yield "  " + message % {"message": finding.message}


def _difference(difference: Difference) -> str:
    name = difference.field
    if difference.part:
        name = f"{name}, {difference.part}"
    texts = difference.before, difference.after
    lines = [None if text is None else " ".join(text.split()) for text in texts]
    if lines[0] == lines[1]:
        # They differ only in blanks or line breaks: show JSON, without its quotes.
        lines = [None if text is None else pretty_text(text)[1:-1] for text in texts]
    before, after = _shortened_values(lines)
    return f"  {name}: {before} -> {after}"


def _shortened_values(lines: Sequence[str | None]) -> Iterator[str]:
    """Yield both values, cut to a line; long ones begin shortly before they differ."""
    start = 0
    if any(line is not None and len(line) > MAX_VALUE_LENGTH for line in lines):
        same = common_start(*(line or "" for line in lines))
        start = max(0, same - MAX_VALUE_LENGTH // 4)
    for line in lines:
        if line is None:
            yield _("(not there)")
            continue
        excerpt = line[start : start + MAX_VALUE_LENGTH]
        before = "…" if start else ""
        after = "…" if start + MAX_VALUE_LENGTH < len(line) else ""
        yield f"“{before}{visible(excerpt, None)}{after}”"
