"""What the publishing pages show: differences, consequences in numbers, findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import Http404, HttpRequest
from django.utils.formats import date_format
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.admin.access.conditions import method_label
from mcp_app.admin.access.visibility import (
    at_servers,
    in_numbers,
    tags_and_requirements,
)
from mcp_app.admin.editors.hints import AUDIENCES, IMPORTANCES
from mcp_app.admin.forms import editing_field, form_of
from mcp_app.admin.forms.fields import seconds_of
from mcp_app.admin.page.concurrency import may, whom_to_ask
from mcp_app.admin.page.header import page_url, why_broken
from mcp_app.admin.page.wording import EVERY, HINTS, READABLE, SERVER, Words
from mcp_app.catalog.findings import Finding
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.row_loader import load_servers
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible
from mcp_app.models import (
    DefinitionRow,
    DefinitionVersion,
    PublishedRow,
    Server,
    Session,
    Tool,
)
from mcp_app.models.fields import words
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.jsonrpc import pretty
from mcp_app.publishing.differences import Difference, Piece, differences
from mcp_app.publishing.publication import Proposal, propose, propose_version
from mcp_app.site_time import local_time

# -- difference labels -----------------------------------------------------------------
# Differences in the words of the forms: labels of fields, and what choices say.


TAKEN_APART: Final = frozenset({"arguments", "chosen", "config", "input_schema"})
"""Columns whose parts have names that say enough."""
PARTS: Final[Mapping[tuple[str, str], Label]] = {
    ("annotations", "audience"): READABLE["audience"][0],
    ("annotations", "priority"): READABLE["importance"][0],
    **{("chosen", name): SERVER[name][0] for name in Server.CHOICES},
}
"""The fields of a form that edit a part of a column."""


@dataclass(frozen=True, slots=True)
class ShownDifference:
    """A difference with the label of its field, and values as its form shows them."""

    difference: Difference
    label: str

    @property
    def before(self) -> str | None:
        return self.difference.before

    @property
    def after(self) -> str | None:
        return self.difference.after

    def pieces_before(self) -> list[Piece]:
        return self.difference.pieces_before()

    def pieces_after(self) -> list[Piece]:
        return self.difference.pieces_after()


def shown_differences(
    row: PublishedRow, found: Iterable[Difference]
) -> list[ShownDifference]:
    """Return differences with the labels and the words that the row's form uses."""
    labels = _words_of(row)
    return [
        ShownDifference(_worded(row, each), _label(row, each, labels)) for each in found
    ]


def _words_of(row: PublishedRow) -> Words:
    if isinstance(row, DefinitionRow):
        return {**EVERY, **HINTS, **form_of(type(row), row.kind).WORDS}
    return {**EVERY, **SERVER}


def _label(row: PublishedRow, found: Difference, labels: Words) -> str:
    if (found.field, found.part) in PARTS:
        return str(PARTS[found.field, found.part])
    part = visible(found.part)
    if part and found.field in TAKEN_APART:
        return capfirst(part)
    field = str(labels[found.field][0]) if found.field in labels else ""
    if not field:
        named = {each.name: each for each in row._meta.get_fields()}
        field = str(getattr(named.get(found.field), "verbose_name", found.field))
    return capfirst(f"{field}, {part}" if part else field)


def _worded(row: PublishedRow, found: Difference) -> Difference:
    """Return a difference with values as the form shows them, if they differ there."""
    wording = _WORDINGS.get((found.field, found.part)) or _WORDINGS.get(
        (found.field, "")
    )
    if wording is None:
        return found
    before, after = (
        None if each is None else wording(row, each)
        for each in (found.before, found.after)
    )
    if before == after:
        return found
    return Difference(found.field, found.part, before, after, found.breaks)


def _chosen_of(choices: Mapping[str, Label]) -> Callable[[PublishedRow, str], str]:
    return lambda _row, value: str(choices.get(value, value))


def _methods(row: PublishedRow, value: str) -> str:
    return "\n".join(map(method_label, words(value)))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _seconds(row: PublishedRow, value: str) -> str:
    return seconds_of(int(value)) if _is_number(value) else value


def _titles(name: str) -> Callable[[PublishedRow, str], str]:
    def titles(row: PublishedRow, value: str) -> str:
        keys = [int(key) for key in value.splitlines() if _is_number(key)]
        return "\n".join(_titles_of(row, name, keys))

    return titles


def _titles_of(row: PublishedRow, name: str, keys: Iterable[int]) -> Iterator[str]:
    model: Any = type(row)._meta.get_field(name).related_model
    known = model._default_manager.in_bulk(keys)
    for key in keys:
        yield str(known[key]) if key in known else _("one that was deleted")


_WORDINGS: Final[Mapping[tuple[str, str], Callable[[PublishedRow, str], str]]] = {
    ("selection", ""): _chosen_of(dict(Server.Selection.choices)),
    ("listing", ""): _chosen_of(dict(Server.ToolList.choices)),
    ("annotations", "audience"): _chosen_of(AUDIENCES),
    ("annotations", "priority"): _chosen_of(IMPORTANCES),
    ("access", ""): _methods,
    ("ttl_ms", ""): _seconds,
    **{("chosen", name): _titles(name) for name in Server.CHOICES},
}


# -- comparison ------------------------------------------------------------------------


WORKING_COPY: Final = 0
"""The number that stands for the working copy when a page asks for a version."""


@dataclass(frozen=True, slots=True)
class Choice:
    number: int
    label: str


def _as_json(content: JsonObject) -> str:
    return visible(pretty(content), None)


def context(
    request: HttpRequest, row: PublishedRow, registry: Registry
) -> dict[str, Any]:
    """Return the context of *Publish*; `?before=` and `?after=` compare others."""
    versions = list(_heads(row))
    before = _asked(request, "before", _served_number(row))
    after = _asked(request, "after", WORKING_COPY)
    proposal = propose(row, registry)
    compared: dict[str, Any] = {
        "differences": shown_differences(row, proposal.differences),
        "as_json": _as_json(proposal.content),
    }
    others = (before, after) != (_served_number(row), WORKING_COPY)
    if others:
        compared = _compared(row, before, after)
    return {
        **_proposed(request, row, proposal),
        **compared,
        "proposal": None if others else proposal,
        "versions": [_choice(row, each) for each in versions],
        "versions_after": [
            Choice(WORKING_COPY, _("Working copy")),
            *(_choice(row, each) for each in versions),
        ],
        "before": before,
        "after": after,
        "before_label": _version_label(before),
        "after_label": _version_label(after),
        "unpublish_url": "" if _is_from_code(row) else page_url(row, "unpublish"),
        "next_number": _next(versions),
    }


def _is_from_code(row: PublishedRow) -> bool:
    return isinstance(row, DefinitionRow) and row.from_code


def restoring(
    request: HttpRequest,
    row: PublishedRow,
    version: DefinitionVersion,
    registry: Registry,
) -> dict[str, Any]:
    """Return the context of the page that rolls back to a version."""
    proposal = propose_version(row, version, registry)
    return {
        **_proposed(request, row, proposal),
        "proposal": proposal,
        "differences": shown_differences(row, proposal.differences),
        "as_json": _as_json(proposal.content),
        "restores": version.number,
        "before_label": _version_label(_served_number(row)),
        "after_label": _version_label(version.number),
        "next_number": _next(list(_heads(row))),
    }


def looking(version: DefinitionVersion) -> dict[str, Any]:
    """Return the context of the page of one version."""
    said = _("%(author)s published it on %(at)s (fingerprint %(hash)s).") % {
        "author": version.author_name or _("a command"),
        "at": date_format(local_time(version.created), "SHORT_DATETIME_FORMAT"),
        "hash": version.hash,
    }
    return {"as_json": _as_json(version.read()), "sentence": said}


def unpublishing(row: PublishedRow) -> list[str]:
    """Say what happens when a row is unpublished."""
    return [
        _(
            "Clients no longer find this definition, and connected clients"
            " are notified."
        ),
        _(
            "The versions are kept: if you publish again, clients see the"
            " definition again."
        ),
        _("If you only want to switch it off for a while, stop it instead."),
        *_told(row),
    ]


def back(row: PublishedRow) -> str:
    """Say what clients see once a row is started again."""
    if why := why_broken(row):
        return stays_broken(why)
    if row.published is not None:
        number = {"number": row.published.number}
        return _("Clients see version %(number)d again.") % number
    if isinstance(row, DefinitionRow) and row.from_code:
        return _("Clients now see the definition from the code again.")
    return _("It is not published. Clients see it only after you publish it.")


def stays_broken(why: str) -> str:
    """Say that starting a row does not repair it."""
    return _("It stays broken, so clients do not see it: %(why)s") % {"why": why}


def not_found(what: object) -> Http404:
    """Return the 404 for something that no longer exists."""
    return Http404(_("This %(what)s does not exist any more.") % {"what": what})


def _proposed(
    request: HttpRequest, row: PublishedRow, proposal: Proposal[Any]
) -> dict[str, Any]:
    return {
        "judged": proposal.judged,
        "to_fix": [*_to_go_to(row, proposal.judged.to_fix)],
        "advices": [*_to_go_to(row, proposal.judged.advices)],
        "breaks": proposal.breaks,
        "is_served_already": proposal.is_served_already,
        "consequences": [
            *_told(row, proposal.content),
            *at_servers(row, proposal.content),
            *in_numbers(row, proposal.content),
            *_costs(row, proposal),
        ],
        "may_publish": may(request, "publish"),
        "reason": whom_to_ask(request, "publish"),
        "note": request.POST.get("note", ""),
    }


def _to_go_to(
    row: PublishedRow, findings: Sequence[Finding]
) -> Iterator[tuple[str, str]]:
    """Yield each message with the form field to go to, "" for the whole form."""
    for each in findings:
        field = each.field
        if isinstance(row, DefinitionRow):
            field = editing_field(row, field)
        yield each.message, field


def _told(row: PublishedRow, content: JsonObject | None = None) -> list[str]:
    """Say how many sessions notice it, and what happens to running calls."""
    servers = offering(row, content)
    count = Session.objects.filter(server__in=servers).count() if servers else 0
    told = ngettext(
        "%(count)d session is open. Its client is notified if it listens, and"
        " otherwise sees the change when it asks.",
        "%(count)d sessions are open. Clients that listen are notified, the others"
        " see the change when they ask.",
        count,
    ) % {"count": count}
    if not count:
        told = _(
            "No client is connected. Clients see the change the next time they ask."
        )
    if not servers:
        told = _("No server offers it, so no client notices.")
    return [told, _("Running calls finish with the version that they began with.")]


def offering(row: PublishedRow, content: JsonObject | None) -> list[str]:
    """Return the servers that offer a row, as published or with this content."""
    if isinstance(row, Server):
        return [row.slug]
    served = row.published.read() if row.published is not None else {}
    key = row.kind_of_row, str(row.pk)
    tags = [tags_and_requirements(row, each)[0] for each in (served, content or served)]
    return [
        slug
        for slug, server in load_servers(stopped=False).items()
        if any(server.offers(each, key) for each in tags)
    ]


def _costs(row: PublishedRow, proposal: Proposal[Any]) -> Sequence[str]:
    tokens = proposal.judged.tokens
    # Clients give a model only the tools with every request.
    if not tokens or not isinstance(row, Tool):
        return ()
    return [
        ngettext(
            "It takes ≈ %(count)d token of a model's memory on every request.",
            "It takes ≈ %(count)d tokens of a model's memory on every request.",
            tokens,
        )
        % {"count": tokens}
    ]


def _heads(row: PublishedRow) -> Iterable[DefinitionVersion]:
    """Return the newest 200 versions of a row, without their contents."""
    return DefinitionVersion.objects.of(row).defer("content")[:200]


def _choice(row: PublishedRow, version: DefinitionVersion) -> Choice:
    label = _version_label(version.number)
    if version.pk == row.published_id:
        label = _("%(version)s (clients see this one)") % {"version": label}
    return Choice(version.number, label)


def _version_label(number: int) -> str:
    if number == WORKING_COPY:
        return _("Working copy")
    if number < WORKING_COPY:
        return _("What clients see now: nothing")
    return _("Version %(number)d") % {"number": number}


NOTHING: Final = -1
MOST_DIGITS: Final = 9


def _served_number(row: PublishedRow) -> int:
    return NOTHING if row.published is None else row.published.number


def served_label(row: PublishedRow) -> str:
    """Return the heading of what clients see now."""
    return _version_label(_served_number(row))


def number_from(text: str, default: int) -> int:
    """Parse a version number that a page sent; return `default` for anything else."""
    is_number = text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
    return int(text) if is_number else default


def _asked(request: HttpRequest, name: str, default: int) -> int:
    return number_from(request.GET.get(name, ""), default)


def _compared(row: PublishedRow, before: int, after: int) -> dict[str, Any]:
    old, new = (_content(row, number) for number in (before, after))
    return {
        "differences": shown_differences(row, differences(old, new)),
        "as_json": _as_json(new),
        "is_served_already": False,
    }


def _content(row: PublishedRow, number: int) -> JsonObject:
    if number == WORKING_COPY:
        return row.working_content()
    if number == NOTHING:
        return {}
    found = DefinitionVersion.objects.of(row).filter(number=number).first()
    if found is None:
        raise not_found(_("version"))
    return found.read()


def _next(versions: Sequence[DefinitionVersion]) -> int:
    return versions[0].number + 1 if versions else 1
