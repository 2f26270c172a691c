"""What importing would do, in lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.interface.rules import visible
from mcp_app.publishing.bundle.comparing import Compared, Comparison, Outcome
from mcp_app.publishing.differences import Difference

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
        _("%(count)d only here (left alone)") % {"count": comparison.only_here},
    ]
    if numbers[Outcome.CANNOT]:
        said.append(_("%(count)d impossible") % {"count": numbers[Outcome.CANNOT]})
    return " · ".join(said)


def lines(comparison: Comparison, *, publish: bool) -> Iterator[str]:
    """Yield the differences entry by entry, and at the end the counts."""
    for compared in comparison.entries:
        if compared.outcome(publish=publish) != Outcome.SAME:
            yield from _entry(compared, publish=publish)
    yield counts(comparison, publish=publish)


def _entry(compared: Compared, *, publish: bool) -> Iterator[str]:
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


def _publication(compared: Compared, *, publish: bool) -> Iterator[str]:
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


def notes(compared: Compared) -> Iterator[str]:
    """Yield what holds up no import, and is to be known."""
    if compared.is_vanished:
        yield "  " + _("Broken here: the code does not declare it.")
        return
    for finding in compared.judged.to_fix:
        said = _("Must be fixed before publishing: %(message)s")
        yield "  " + said % {"message": finding.message}


def _difference(difference: Difference) -> str:
    name = difference.field
    if difference.part:
        name = f"{name}, {difference.part}"
    before, after = _value(difference.before), _value(difference.after)
    return f"  {name}: {before} -> {after}"


def _value(text: str | None) -> str:
    if text is None:
        return _("(not there)")
    line = " ".join(text.split())
    shown = line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
    return f"“{visible(shown)}”"
