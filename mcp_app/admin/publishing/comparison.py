"""What the publishing pages show: differences, consequences in numbers, findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import Http404, HttpRequest
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
from mcp_app.admin.page.concurrency import has_right, whom_to_ask
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
from mcp_app.models.fields import split_words
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.jsonrpc import pretty_text
from mcp_app.publishing.differences import Difference, differences
from mcp_app.publishing.publication import (
    Proposal,
    propose_publication,
    propose_version,
)
from mcp_app.site_time import time_text

# -- difference labels -----------------------------------------------------------------
# Differences in the words of the forms: labels of fields, and what choices say.

SPLIT_COLUMNS: Final = frozenset({"arguments", "chosen", "config", "input_schema"})
"""Columns whose parts have names that say enough."""
PARTS: Final[Mapping[tuple[str, str], Label]] = {
    ("annotations", "audience"): READABLE["audience"][0],
    ("annotations", "priority"): READABLE["importance"][0],
    **{("chosen", name): SERVER[name][0] for name in Server.CHOICES},
}
"""The fields of a form that edit a part of a column."""


@dataclass(frozen=True, slots=True)
class ShownDifference(Difference):
    """A difference with the label of its field, and values as its form shows them."""

    label: str = ""


def labeled_differences(
    row: PublishedRow, changes: Iterable[Difference]
) -> list[ShownDifference]:
    """Return differences with the labels and the words that the row's form uses."""
    labels: Words = {**EVERY, **SERVER}
    if isinstance(row, DefinitionRow):
        labels = {**EVERY, **HINTS, **form_of(type(row), row.kind).WORDS}
    return [
        ShownDifference(
            each.field,
            each.part,
            *_values_in_words(row, each),
            each.breaks,
            _difference_label(row, each, labels),
        )
        for each in changes
    ]


def _difference_label(row: PublishedRow, difference: Difference, labels: Words) -> str:
    if (difference.field, difference.part) in PARTS:
        return str(PARTS[difference.field, difference.part])
    part = visible(difference.part)
    if part and difference.field in SPLIT_COLUMNS:
        return capfirst(part)
    field = str(labels[difference.field][0]) if difference.field in labels else ""
    if not field:
        columns = {each.name: each for each in row._meta.get_fields()}
        column = columns.get(difference.field)
        field = str(getattr(column, "verbose_name", difference.field))
    return capfirst(f"{field}, {part}" if part else field)


def _values_in_words(
    row: PublishedRow, difference: Difference
) -> tuple[str | None, str | None]:
    """Return the values as the form shows them, if they differ there."""
    plain = difference.before, difference.after
    field = difference.field
    wording = _WORDINGS.get((field, difference.part)) or _WORDINGS.get((field, ""))
    if wording is None:
        return plain
    before, after = (None if each is None else wording(row, each) for each in plain)
    return plain if before == after else (before, after)


def _chosen_of(choices: Mapping[str, Label]) -> Callable[[PublishedRow, str], str]:
    return lambda _row, value: str(choices.get(value, value))


def _method_labels(row: PublishedRow, value: str) -> str:
    return "\n".join(map(method_label, split_words(value)))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _seconds_text(row: PublishedRow, value: str) -> str:
    return seconds_of(int(value)) if _is_number(value) else value


def _titles_wording(name: str) -> Callable[[PublishedRow, str], str]:
    def row_titles(row: PublishedRow, value: str) -> str:
        keys = [int(key) for key in value.splitlines() if _is_number(key)]
        model: Any = type(row)._meta.get_field(name).related_model
        known = model._default_manager.in_bulk(keys)
        gone = _("one that was deleted")
        return "\n".join(str(known.get(key, gone)) for key in keys)

    return row_titles


_WORDINGS: Final[Mapping[tuple[str, str], Callable[[PublishedRow, str], str]]] = {
    ("selection", ""): _chosen_of(dict(Server.Selection.choices)),
    ("listing", ""): _chosen_of(dict(Server.ToolList.choices)),
    ("annotations", "audience"): _chosen_of(AUDIENCES),
    ("annotations", "priority"): _chosen_of(IMPORTANCES),
    ("access", ""): _method_labels,
    ("ttl_ms", ""): _seconds_text,
    **{("chosen", name): _titles_wording(name) for name in Server.CHOICES},
}


# -- comparison ------------------------------------------------------------------------

WORKING_COPY: Final = 0
"""The number that stands for the working copy when a page asks for a version."""


def _content_json(content: JsonObject) -> str:
    return visible(pretty_text(content), None)


def publish_context(
    request: HttpRequest, row: PublishedRow, registry: Registry
) -> dict[str, Any]:
    """Return the context of *Publish*; `?before=` and `?after=` compare others."""
    versions = list(_newest_versions(row))
    choices = [_version_choice(row, each) for each in versions]
    served = _served_number(row)
    before = number_from(request.GET.get("before", ""), served)
    after = number_from(request.GET.get("after", ""), WORKING_COPY)
    context = _proposal_context(request, row, propose_publication(row, registry))
    if (before, after) != (served, WORKING_COPY):
        context |= {"proposal": None, **_version_comparison(row, before, after)}
    is_from_code = isinstance(row, DefinitionRow) and row.from_code
    return {
        **context,
        "versions": choices,
        "versions_after": [
            {"number": WORKING_COPY, "label": _version_label(WORKING_COPY)},
            *choices,
        ],
        "before": before,
        "after": after,
        "before_label": _version_label(before),
        "after_label": _version_label(after),
        "unpublish_url": "" if is_from_code else page_url(row, "unpublish"),
        "next_number": _next_number(versions),
    }


def restoring(
    request: HttpRequest,
    row: PublishedRow,
    version: DefinitionVersion,
    registry: Registry,
) -> dict[str, Any]:
    """Return the context of the page that rolls back to a version."""
    return {
        **_proposal_context(request, row, propose_version(row, version, registry)),
        "restores": version.number,
        "before_label": _version_label(_served_number(row)),
        "after_label": _version_label(version.number),
        "next_number": _next_number(list(_newest_versions(row))),
    }


def version_context(version: DefinitionVersion) -> dict[str, Any]:
    """Return the context of the page of one version."""
    sentence = _("%(author)s published it (%(at)s, fingerprint %(hash)s).") % {
        "author": version.author_name or _("a command"),
        "at": time_text(version.created),
        "hash": version.hash,
    }
    return {"as_json": _content_json(version.read()), "sentence": sentence}


def unpublishing(row: PublishedRow) -> list[str]:
    """Say what happens when a row is unpublished."""
    return [
        _(
            "Clients no longer find this definition, and connected clients"
            " are notified."
        ),
        _(
            "The versions are kept: if you publish again, clients see the definition"
            " again."
        ),
        _("If you only want to switch it off for a while, stop it instead."),
        *_session_consequences(row),
    ]


def restart_sentence(row: PublishedRow) -> str:
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


def missing_error(what: object) -> Http404:
    """Return the 404 for something that no longer exists."""
    return Http404(_("This %(what)s does not exist any more.") % {"what": what})


def _proposal_context(
    request: HttpRequest, row: PublishedRow, proposal: Proposal[Any]
) -> dict[str, Any]:
    return {
        "proposal": proposal,
        "differences": labeled_differences(row, proposal.differences),
        "as_json": _content_json(proposal.content),
        "judged": proposal.judged,
        "to_fix": [*_findings_with_fields(row, proposal.judged.to_fix)],
        "advices": [*_findings_with_fields(row, proposal.judged.advices)],
        "breaks": proposal.breaks,
        "is_served_already": proposal.is_served_already,
        "consequences": [
            *_session_consequences(row, proposal.content),
            *at_servers(row, proposal.content),
            *in_numbers(row, proposal.content),
            *_token_costs(row, proposal),
        ],
        "may_publish": has_right(request, "publish"),
        "reason": whom_to_ask(request, "publish"),
        "note": request.POST.get("note", ""),
    }


def _findings_with_fields(
    row: PublishedRow, findings: Sequence[Finding]
) -> Iterator[tuple[str, str]]:
    """Yield each message with the form field to go to, "" for the whole form."""
    for each in findings:
        field = each.field
        if isinstance(row, DefinitionRow):
            field = editing_field(row, field)
        yield each.message, field


def _session_consequences(
    row: PublishedRow, content: JsonObject | None = None
) -> list[str]:
    """Say how many sessions notice it, and what happens to running calls."""
    servers = servers_offering(row, content)
    count = Session.objects.filter(server__in=servers).count() if servers else 0
    sentence = ngettext(
        "%(count)d session is open. Its client is notified if it listens, and"
        " otherwise sees the change when it asks.",
        "%(count)d sessions are open. Clients that listen are notified, the others"
        " see the change when they ask.",
        count,
    ) % {"count": count}
    if not count:
        sentence = _(
            "No client is connected. Clients see the change the next time they ask."
        )
    if not servers:
        sentence = _("No server offers it, so no client notices.")
    return [sentence, _("Running calls finish with the version that they began with.")]


def servers_offering(row: PublishedRow, content: JsonObject | None) -> list[str]:
    """Return the servers that offer a row, as published or with this content."""
    if isinstance(row, Server):
        return [row.slug]
    served = row.published.read() if row.published is not None else {}
    key = row.kind_of_row, str(row.pk)
    tags = [tags_and_requirements(row, each)[0] for each in (served, content or served)]
    return [
        slug
        for slug, server in load_servers(stopped=False).items()
        if any(server.offers_definition(each, key) for each in tags)
    ]


def _token_costs(row: PublishedRow, proposal: Proposal[Any]) -> Sequence[str]:
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


def _newest_versions(row: PublishedRow) -> Iterable[DefinitionVersion]:
    """Return the newest 200 versions of a row, without their contents."""
    return DefinitionVersion.objects.of(row).defer("content")[:200]


def _version_choice(row: PublishedRow, version: DefinitionVersion) -> dict[str, Any]:
    label = _version_label(version.number)
    if version.pk == row.published_id:
        label = _("%(version)s (clients see this one)") % {"version": label}
    return {"number": version.number, "label": label}


def _version_label(number: int) -> str:
    if number == WORKING_COPY:
        return _("Working copy")
    if number < WORKING_COPY:
        return _("What clients see now: nothing")
    return _("Version %(number)d") % {"number": number}


NOTHING: Final = -1
MAX_NUMBER_DIGITS: Final = 9


def _served_number(row: PublishedRow) -> int:
    return NOTHING if row.published is None else row.published.number


def served_label(row: PublishedRow) -> str:
    """Return the heading of what clients see now."""
    return _version_label(_served_number(row))


def number_from(text: str, default: int) -> int:
    """Parse a version number that a page sent; return `default` for anything else."""
    is_number = text.isascii() and text.isdigit() and len(text) <= MAX_NUMBER_DIGITS
    return int(text) if is_number else default


def _version_comparison(row: PublishedRow, before: int, after: int) -> dict[str, Any]:
    old, new = (_version_content(row, number) for number in (before, after))
    return {
        "differences": labeled_differences(row, differences(old, new)),
        "as_json": _content_json(new),
        "is_served_already": False,
    }


def _version_content(row: PublishedRow, number: int) -> JsonObject:
    if number == WORKING_COPY:
        return row.working_content()
    if number == NOTHING:
        return {}
    version = DefinitionVersion.objects.of(row).filter(number=number).first()
    if version is None:
        raise missing_error(_("version"))
    return version.read()


def _next_number(versions: Sequence[DefinitionVersion]) -> int:
    return versions[0].number + 1 if versions else 1
