"""What importing would do, in lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.interface.rules import visible
from mcp_app.protocol.jsonrpc import pretty
from mcp_app.publishing.bundle.comparing import ComparedEntry, Comparison, Outcome
from mcp_app.publishing.differences import Difference, common_start

LONGEST = 200
"""Characters of a value that a line shows."""


def counts(comparison: Comparison, *, publish: bool) -> str:
    """Return how many entries there are of each outcome."""
    numbers = {
        outcome: len(comparison.having(outcome, publish=publish)) for outcome in Outcome
    }
    said = [
        _("%(count)d new") % {"count": numbers[Outcome.NEW]},
        _("%(count)d changed") % {"count": numbers[Outcome.CHANGED]},
        _("%(count)d the same") % {"count": numbers[Outcome.SAME]},
        _("%(count)d not in the file (unchanged)") % {"count": comparison.only_here},
    ]
    if numbers[Outcome.CANNOT]:
        count = numbers[Outcome.CANNOT]
        said.append(_("%(count)d cannot be imported") % {"count": count})
    return " · ".join(said)


def lines(comparison: Comparison, *, publish: bool) -> Iterator[str]:
    """Yield the differences entry by entry, and at the end the counts."""
    for compared in comparison.entries:
        if compared.outcome(publish=publish) != Outcome.SAME:
            yield from _entry(compared, publish=publish)
    yield counts(comparison, publish=publish)


def _entry(compared: ComparedEntry, *, publish: bool) -> Iterator[str]:
    outcome = compared.outcome(publish=publish)
    yield f"{_heading(outcome)}: {visible(str(compared.entry))}"
    for problem in compared.obstacles(publish=publish):
        yield "  " + _("Impossible: %(problem)s") % {"problem": problem}
    yield from map(_difference, compared.differences)
    yield from _publication(compared, publish=publish)
    yield from notes(compared)


def _heading(outcome: Outcome) -> str:
    return {
        Outcome.NEW: _("New"),
        Outcome.CHANGED: _("Changed"),
        Outcome.SAME: _("The same"),
        Outcome.CANNOT: _("Impossible"),
    }[outcome]


def _publication(compared: ComparedEntry, *, publish: bool) -> Iterator[str]:
    publication = compared.publication
    if publication is None or not publish:
        return
    count = len(publication.differences)
    yield "  " + ngettext(
        "Published: %(count)d difference from what clients see.",
        "Published: %(count)d differences from what clients see.",
        count,
    ) % {"count": count}
    if publication.differences != compared.differences:
        yield from map(_difference, publication.differences)
    for sentence in publication.breaks:
        yield "  " + _("Breaks old calls: %(sentence)s") % {"sentence": sentence}


def notes(compared: ComparedEntry) -> Iterator[str]:
    """Yield what holds up no import, and is to be known."""
    if compared.is_vanished:
        yield "  " + _("Broken here: the code does not declare it.")
        return
    if compared.is_left_unpublished:
        said = _(
            "It is not published here, and stays unpublished until you publish it"
            " yourself."
        )
        yield "  " + said
    for finding in compared.judged.to_fix:
        said = _("Must be fixed before publishing: %(message)s")
        yield "  " + said % {"message": finding.message}


def _difference(difference: Difference) -> str:
    name = difference.field
    if difference.part:
        name = f"{name}, {difference.part}"
    texts = difference.before, difference.after
    lines = [None if text is None else " ".join(text.split()) for text in texts]
    if lines[0] == lines[1]:
        # They differ in blanks or line breaks only.
        lines = [None if text is None else pretty(text)[1:-1] for text in texts]
    before, after = _values(lines)
    return f"  {name}: {before} -> {after}"


def _values(lines: Sequence[str | None]) -> Iterator[str]:
    """Yield both, as far as a line shows them: long ones from where they differ."""
    start = 0
    if any(line is not None and len(line) > LONGEST for line in lines):
        same = common_start(*(line or "" for line in lines))
        start = max(0, same - LONGEST // 4)
    for line in lines:
        if line is None:
            yield _("(not there)")
            continue
        shown = line[start : start + LONGEST]
        before = "…" if start else ""
        after = "…" if start + LONGEST < len(line) else ""
        yield f"“{before}{visible(shown, None)}{after}”"
