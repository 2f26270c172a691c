"""What importing a bundle would do, entry by entry; nothing is written.

It compares what would be saved and published, by the same rules as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

from django.utils.translation import gettext as _

from mcp_app.catalog.findings import Finding
from mcp_app.catalog.registry import Registry
from mcp_app.interface.rules import visible
from mcp_app.kinds.survey import declarations
from mcp_app.models import DefinitionRow, PublishedRow, Server
from mcp_app.models.fields import digest
from mcp_app.models.versions import hash_of
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.bundle.candidates import (
    apply_entry,
    chosen_in,
    in_columns,
    naturally,
    published_row,
    row_problems,
    server_limits,
    unsaved_row,
    with_all_lists,
    without_choice,
    without_limits,
    working_copy,
)
from mcp_app.publishing.bundle.format import Bundle, Entry, Identity, PublishedContent
from mcp_app.publishing.bundle.site_rows import SiteRows
from mcp_app.publishing.differences import (
    ClientView,
    Difference,
    breaking_reasons,
    client_view,
    differences,
    plain_differences,
)
from mcp_app.publishing.rights import WHO_COLUMNS
from mcp_app.publishing.row_findings import Findings, conflict_finding, judge_content
from mcp_app.site_time import time_text


class Outcome(Enum):
    """What becomes of an entry."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "the same"
    CANNOT = "cannot"


@dataclass(frozen=True, slots=True)
class Publication:
    """What publishing would change, too; `number` is the version in the file.

    `problems` say why it cannot be published.
    """

    number: int
    content: JsonObject
    differences: Sequence[Difference]
    breaks: Sequence[str]
    problems: Sequence[str]


@dataclass(frozen=True, slots=True)
class ComparedEntry:
    """An entry beside the row that is here.

    `row` is the row as it would be saved.  `before` is its content here, {} for a new
    row.  `problems` say why it cannot be imported at all; `judged` are the findings of
    the working copy.  `publication` is None if nothing would be published.
    """

    entry: Entry
    row: PublishedRow
    is_new: bool
    before: JsonObject
    differences: Sequence[Difference]
    problems: Sequence[str]
    judged: Findings
    publication: Publication | None
    is_vanished: bool = False
    """Whether it is an overlay, and the code here does not declare its definition."""

    @property
    def is_saved(self) -> bool:
        """Whether the working copy would be written."""
        return self.is_new or bool(self.differences)

    @property
    def conflicts(self) -> list[str]:
        """Return whose unpublished work the file would overwrite."""
        return [] if self.is_new else [*self._conflicts()]

    def _conflicts(self) -> Iterator[str]:
        row, is_server = self.row, isinstance(self.row, Server)
        fields = {difference.field for difference in self.differences}
        if is_server and row.published and fields & {*WHO_COLUMNS}:
            # No version keeps who may use a server: no rollback restores that.
            yield _("The file would change who may come in.")
        if not fields or row.content_hash == row.served_hash():
            return
        by = _("somebody")
        if isinstance(row, DefinitionRow):
            by = f"{row.updated_by or _('a command')}, {time_text(row.updated)}"
        message = _("The file would overwrite what is saved and not published: %(by)s.")
        yield message % {"by": visible(by, None)}

    @property
    def is_left_unpublished(self) -> bool:
        """Whether the file publishes a server that is not published here."""
        row, published = self.row, self.entry.published
        is_server = isinstance(row, Server)
        return is_server and published is not None and row.published is None

    def outcome(self, *, publish: bool) -> Outcome:
        """Return what becomes of the entry, with or without publishing."""
        publication = self.publication if publish else None
        if self.problems or (publication is not None and publication.problems):
            return Outcome.CANNOT
        if self.is_new:
            return Outcome.NEW
        if self.differences or publication is not None:
            return Outcome.CHANGED
        return Outcome.SAME

    def obstacles(self, *, publish: bool) -> list[str]:
        """Return why it cannot be imported or, with `publish`, be published."""
        publication = self.publication if publish else None
        problems = () if publication is None else publication.problems
        return list(dict.fromkeys([*self.problems, *problems]))


@dataclass(frozen=True)
class Comparison:
    """A bundle beside this site; `only_here` counts rows that it does not name."""

    bundle: Bundle
    entries: Sequence[ComparedEntry]
    only_here: int
    primary_keys: Mapping[Identity, int] = field(default_factory=dict)

    def entries_with_outcome(
        self, outcome: Outcome, *, publish: bool = False
    ) -> list[ComparedEntry]:
        """Return the entries with an outcome."""
        return [
            entry for entry in self.entries if entry.outcome(publish=publish) == outcome
        ]

    def entries_to_write(self, *, publish: bool) -> list[ComparedEntry]:
        """Return the entries that would change the database."""
        written = (Outcome.NEW, Outcome.CHANGED)
        return [
            entry for entry in self.entries if entry.outcome(publish=publish) in written
        ]

    @cached_property
    def looked_at(self) -> str:
        """The digest of the file, of what is here, and of what would become of it."""
        states: list[object] = []
        for entry in self.entries:
            rules = [finding.rule for finding in entry.judged.findings]
            outcomes = [entry.outcome(publish=flag).value for flag in (False, True)]
            row = entry.row
            states.append([row.pk, row.published_id, entry.before, rules, outcomes])
        facts = [self.bundle.digest, self.bundle.publishes_working, states]
        return digest(jsonrpc.canonical(facts))


def compare_bundle(
    bundle: Bundle, registry: Registry, *, lock: bool = False
) -> Comparison:
    """Return what importing would do; `lock` holds the rows for the transaction."""
    site = SiteRows(bundle, lock=lock)
    comparer = _Comparer(bundle, site, registry)
    entries = [comparer.compare_entry(entry) for entry in bundle.entries]
    keys = {identity: row.pk for identity, row in site.rows.items()}
    return Comparison(bundle, entries, site.only_here(bundle), keys)


class _Comparer:
    def __init__(self, bundle: Bundle, site: SiteRows, registry: Registry) -> None:
        self._publishes_working = bundle.publishes_working
        self._site = site
        self._registry = registry
        self._uploads = {name: each.content for name, each in bundle.uploads.items()}
        self._entry_identities = {entry.identity for entry in bundle.entries}

    def compare_entry(self, entry: Entry) -> ComparedEntry:
        stored = self._site.rows.get(entry.identity)
        if isinstance(stored, DefinitionRow) and stored.source != entry.source:
            return _other_source(entry, stored)
        before: JsonObject = {}
        if stored is not None:
            before = self._content(stored, self._site.choice_of_row(stored))
        row = unsaved_row(entry) if stored is None else stored
        apply_entry(row, entry)
        after = self._content(row, entry.working.get("chosen", {}))
        changes = plain_differences(before, after)
        problems, judged = [], Findings([])
        if changes or stored is None:
            problems = [*row_problems(row), *self._unknown_choices(after)]
        if not problems:
            # If it breaks the rules, it is neither compared in detail nor judged.
            changes = differences(*self._both_views(row, before, after))
            judged = self._judge_content(row, in_columns(after))
        if self._publishes_working:
            # If nothing differs, this site's content is published, in its own order.
            saved = after if changes or stored is None else before
            content = without_limits(saved) if entry.model is Server else saved
            version = PublishedContent(number=0, hash=hash_of(content), content=content)
            entry = replace(entry, published=version)
        return ComparedEntry(
            entry=entry,
            row=row,
            is_new=stored is None,
            before=before,
            differences=changes,
            problems=problems,
            judged=judged,
            publication=self._publication(row, entry),
            is_vanished=self._is_vanished(row),
        )

    def _content(
        self, row: PublishedRow, chosen: Mapping[str, list[str]]
    ) -> JsonObject:
        """Return the content of a row; a server's choice is in natural keys."""
        if not isinstance(row, Server):
            return row.working_content()
        return {**working_copy(row, chosen), **server_limits(row)}

    def _unknown_choices(self, content: JsonObject) -> Iterator[str]:
        identities = self._entry_identities | self._site.rows.keys()
        for kind, key in chosen_in(content):
            if (kind, key) not in identities:
                yield _(
                    "The server in the file offers “%(key)s”, which is neither at"
                    " this site nor in the file."
                ) % {"key": visible(key)}

    # -- judging ----------------------------------------------------------------------

    def _judge_content(self, row: PublishedRow, content: JsonObject) -> Findings:
        return judge_content(row, content, self._registry, self._uploads)

    def _is_vanished(self, row: PublishedRow) -> bool:
        if not isinstance(row, DefinitionRow) or not row.from_code:
            return False
        return row.identity not in declarations(self._registry)[row.kind_of_row]

    def _publication(self, row: PublishedRow, entry: Entry) -> Publication | None:
        published = entry.published
        if published is None or (isinstance(row, Server) and row.published is None):
            # An import opens no address: people publish such a server themselves.
            return None
        served, served_hash = {}, row.served_hash()
        if row.published is not None:
            served = naturally(row.published.read(), self._site.keys)
            served_hash = hash_of(served)
        content = with_all_lists(published.content)
        if hash_of(content) == served_hash:
            return None
        problems = [
            *row_problems(published_row(entry, content)),
            *self._unknown_choices(content),
        ]
        breaks: Sequence[str] = ()
        if problems:
            changes = plain_differences(served, content)
        else:
            now, then = self._both_views(row, served, content)
            changes = differences(now, then)
            breaks = breaking_reasons(now.content, then.content)
            # Without a declaration in code nobody sees it, published or not.
            if not self._is_vanished(row):
                findings = [*self._identity_conflicts(row, content)]
                findings += self._judge_content(row, without_choice(content)).to_fix
                problems = [finding.message for finding in findings]
        return Publication(
            number=published.number,
            content=content,
            differences=changes,
            breaks=breaks,
            problems=problems,
        )

    def _both_views(self, row: PublishedRow, *contents: JsonObject) -> list[ClientView]:
        return [client_view(row, content, self._registry) for content in contents]

    def _identity_conflicts(
        self, row: PublishedRow, content: JsonObject
    ) -> Iterator[Finding]:
        if not isinstance(row, DefinitionRow) or row.from_code:
            return
        identity = str(content[row.IDENTITY])
        other = self._site.published_as(row.kind_of_row, identity)
        if other is not None and other.pk != row.pk:
            yield conflict_finding(other, identity)


def _other_source(entry: Entry, row: DefinitionRow) -> ComparedEntry:
    """Refuse an entry of code for a row of the admin, or the other way round."""
    sentence = _(
        "At this site the definition was made in the admin, but the"
        " file has changes to a definition in code."
    )
    if row.from_code:
        sentence = _(
            "At this site the definition is declared in code, but at the"
            " other site it was made in the admin."
        )
    return ComparedEntry(entry, row, False, {}, [], [sentence], Findings([]), None)
