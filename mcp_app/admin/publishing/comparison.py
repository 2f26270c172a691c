"""What the pages of publishing show: differences, consequences in numbers, checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import Http404, HttpRequest
from django.utils.formats import date_format
from django.utils.text import capfirst
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.admin.access.visibility import in_numbers, offered
from mcp_app.admin.editors.hints import ASKED_AS
from mcp_app.admin.page.header import lacking, may, page_url, why_broken
from mcp_app.admin.page.wording import EVERY, SERVER, Said
from mcp_app.catalog.findings import Finding
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.stored import load_servers
from mcp_app.interface.rules import visible
from mcp_app.models import (
    DefinitionRow,
    DefinitionVersion,
    PublishedRow,
    Server,
    Session,
)
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.jsonrpc import indented
from mcp_app.publishing.differences import Difference, Piece, differences
from mcp_app.publishing.publication import Proposal, propose, propose_version

WORKING_COPY: Final = 0
"""Stands for the working copy where a page asks for the number of a version."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A difference with the label of its field."""

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


@dataclass(frozen=True, slots=True)
class Choice:
    number: int
    label: str


def shown(row: PublishedRow, found: Iterable[Difference]) -> list[Shown]:
    """Return differences with labels, as the forms call the fields."""
    words = {**EVERY, **SERVER} if isinstance(row, Server) else EVERY
    return [Shown(each, _label(row, each, words)) for each in found]


def _as_json(content: JsonObject) -> str:
    return visible(indented(content), None)


def _label(
    row: PublishedRow, found: Difference, words: Mapping[str, tuple[Said, Said]]
) -> str:
    field = str(words[found.field][0]) if found.field in words else ""
    if not field:
        named = {each.name: each for each in row._meta.get_fields()}
        column = named.get(found.field)
        field = str(getattr(column, "verbose_name", found.field))
    part = visible(found.part)
    if part and found.field in {"input_schema", "arguments", "config"}:
        return capfirst(part)
    return capfirst(f"{field}, {part}" if part else field)


def context(
    request: HttpRequest, row: PublishedRow, registry: Registry
) -> dict[str, Any]:
    """Return what the page *Publish* shows; `?before=` and `?after=` compare others."""
    versions = list(_heads(row))
    before = _asked(request, "before", _served_number(row))
    after = _asked(request, "after", WORKING_COPY)
    proposal = propose(row, registry)
    compared: dict[str, Any] = {
        "differences": shown(row, proposal.differences),
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
    """Return what the page shows that rolls back to a version."""
    proposal = propose_version(row, version, registry)
    return {
        **_proposed(request, row, proposal),
        "proposal": proposal,
        "differences": shown(row, proposal.differences),
        "as_json": _as_json(proposal.content),
        "restores": version.number,
        "before_label": _version_label(_served_number(row)),
        "after_label": _version_label(version.number),
        "next_number": _next(list(_heads(row))),
    }


def looking(version: DefinitionVersion) -> dict[str, Any]:
    """Return what the page of one version shows."""
    said = _("%(author)s published it on %(at)s (fingerprint %(hash)s).") % {
        "author": version.author_name or _("a command"),
        "at": date_format(localtime(version.created), "SHORT_DATETIME_FORMAT"),
        "hash": version.hash,
    }
    return {"as_json": _as_json(version.read()), "sentence": said}


def unpublishing(row: PublishedRow) -> list[str]:
    """Return what happens when a row is taken off the lists."""
    return [
        _("Clients do not find it any more, and those that are connected are told."),
        _("Its versions are kept: publishing brings it back."),
        _("To stop it at once and keep what clients see, stop it instead."),
        *_told(row),
    ]


def switching(row: PublishedRow, *, on: bool) -> dict[str, Any]:
    """Return what happens when a row is stopped or started."""
    if not on:
        return {
            "title": _("Stop"),
            "sentences": [_("Clients stop seeing it at once. Nothing is lost.")],
            "button": _("Stop it"),
        }
    return {
        "title": _("Start again"),
        "sentences": [back(row), *_told(row)],
        "button": _("Start it"),
    }


def back(row: PublishedRow) -> str:
    """Say what clients see once a row is started again."""
    if why := why_broken(row):
        return stays_broken(why)
    if row.published is not None:
        number = {"number": row.published.number}
        return _("Clients see version %(number)d again.") % number
    if isinstance(row, DefinitionRow) and row.from_code:
        return _("Clients see what the code says again.")
    return _("It is not published: clients see it only when it is.")


def stays_broken(why: str) -> str:
    """Say that starting a row does not mend it."""
    return _("It stays broken, so clients do not see it: %(why)s") % {"why": why}


def gone(what: object) -> Http404:
    """Return the answer to a link to what is not there."""
    return Http404(_("This %(what)s does not exist any more.") % {"what": what})


def _proposed(
    request: HttpRequest, row: PublishedRow, proposal: Proposal[Any]
) -> dict[str, Any]:
    return {
        "judged": proposal.judged,
        "to_fix": [*_to_go_to(proposal.judged.to_fix)],
        "advices": [*_to_go_to(proposal.judged.advices)],
        "breaks": proposal.breaks,
        "is_served_already": proposal.is_served_already,
        "consequences": [
            *_told(row, proposal.content),
            *in_numbers(row, proposal.content),
            *_costs(row, proposal),
        ],
        "may_publish": may(request, "publish"),
        "reason": "" if may(request, "publish") else lacking("publish"),
        "note": request.POST.get("note", ""),
    }


def _to_go_to(findings: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    """Yield each message with the form's field that it is about, "" for the whole."""
    for each in findings:
        yield each.message, ASKED_AS.get(each.field, each.field)


def _told(row: PublishedRow, content: JsonObject | None = None) -> list[str]:
    """Say how many sessions notice it, and what becomes of running calls."""
    servers = _offering(row, content)
    count = Session.objects.filter(server__in=servers).count() if servers else 0
    told = ngettext(
        "%(count)d session is open: its client is told if it listens, and otherwise "
        "sees it when it asks.",
        "%(count)d sessions are open: clients that listen are told, the others see it "
        "when they ask.",
        count,
    ) % {"count": count}
    if not count:
        told = _("No session is open. Clients see it when they ask.")
    if not servers:
        told = _("No server offers it, so no client notices.")
    return [told, _("Calls that are running finish as they began.")]


def _offering(row: PublishedRow, content: JsonObject | None) -> list[str]:
    """Return the servers that offer a row as it is or would be."""
    if isinstance(row, Server):
        return [row.slug] if row.enabled else []
    served = row.published.read() if row.published is not None else {}
    key = row.kind_of_row, str(row.pk)
    tags = [offered(row, each)[0] for each in (served, content or served)]
    return [
        slug
        for slug, server in load_servers().items()
        if server.enabled and any(server.offers(each, key) for each in tags)
    ]


def _costs(row: PublishedRow, proposal: Proposal[Any]) -> Sequence[str]:
    tokens = proposal.judged.tokens
    if not tokens:
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
    """Return a row's versions without their contents."""
    return DefinitionVersion.objects.of(row).defer("content")[:200]


def _choice(row: PublishedRow, version: DefinitionVersion) -> Choice:
    label = _version_label(version.number)
    if version.pk == row.published_id:
        label = _("%(version)s (what clients see)") % {"version": label}
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
    """Return a version's number as a page sends it; anything else is the default."""
    is_number = text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
    return int(text) if is_number else default


def _asked(request: HttpRequest, name: str, default: int) -> int:
    return number_from(request.GET.get(name, ""), default)


def _compared(row: PublishedRow, before: int, after: int) -> dict[str, Any]:
    old, new = (_content(row, number) for number in (before, after))
    return {
        "differences": shown(row, differences(old, new)),
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
        raise gone(_("version"))
    return found.read()


def _next(versions: Sequence[DefinitionVersion]) -> int:
    return versions[0].number + 1 if versions else 1
