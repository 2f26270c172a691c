"""What the publishing pages show: differences, consequences in numbers, findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.http import Http404, HttpRequest
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.admin.access.visibility import tags_and_requirements, who_sees
from mcp_app.admin.forms import editing_field
from mcp_app.admin.page.header import page_url, why_broken
from mcp_app.admin.page.keys import number_from
from mcp_app.admin.page.rights import has_right, whom_to_ask
from mcp_app.admin.publishing.difference_labels import common_texts, labeled_differences
from mcp_app.catalog.findings import Finding
from mcp_app.catalog.registry import Registry, mcp
from mcp_app.catalog.row_loader import load_servers
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.interface.rules import visible
from mcp_app.models import (
    DefinitionRow,
    DefinitionVersion,
    PublishedRow,
    Server,
    Session,
    Tool,
)
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.jsonrpc import pretty_text
from mcp_app.publishing.differences import (
    CHANGES,
    ClientView,
    client_view,
    differences,
    hint_words,
)
from mcp_app.publishing.overlays import whole_definition
from mcp_app.publishing.publication import (
    Proposal,
    propose_publication,
    propose_version,
)
from mcp_app.site_time import time_text


def _content_json(content: JsonObject) -> str:
    return visible(pretty_text(content), None)


def publish_context(
    request: HttpRequest, row: PublishedRow, registry: Registry
) -> dict[str, Any]:
    """Return the context of *Publish*; `?before=` and `?after=` compare versions."""
    number = _next_number(row)
    is_from_code = isinstance(row, DefinitionRow) and row.from_code
    context = {
        **_proposal_context(request, row, propose_publication(row, registry)),
        "before_label": served_label(row),
        "after_label": _("Then (version %(number)d)") % {"number": number},
        "unpublish_url": "" if is_from_code else page_url(row, "unpublish"),
        "next_number": number,
    }
    numbers = [
        number_from(request.GET.get(each, ""), 0) for each in ("before", "after")
    ]
    if all(numbers):
        context |= _version_comparison(row, numbers, registry)
    return context


def restoring(
    request: HttpRequest,
    row: PublishedRow,
    version: DefinitionVersion,
    registry: Registry,
) -> dict[str, Any]:
    """Return the context of the page that rolls back to a version."""
    numbers = {"number": _next_number(row), "old": version.number}
    return {
        **_proposal_context(request, row, propose_version(row, version, registry)),
        "restores": version.number,
        "before_label": served_label(row),
        "after_label": _("Then (version %(number)d, as version %(old)d)") % numbers,
        "next_number": numbers["number"],
    }


def version_context(
    row: PublishedRow, version: DefinitionVersion, registry: Registry
) -> dict[str, Any]:
    """Return the context of the page of one version."""
    sentence = _("%(author)s published it (%(at)s, fingerprint %(hash)s).") % {
        "author": version.author_name or _("a command"),
        "at": time_text(version.created),
        "hash": version.fingerprint,
    }
    content = client_view(row, version.read(), registry)
    return {
        "sentence": sentence,
        "differences": labeled_differences(row, differences(ClientView({}), content)),
        "after_label": _version_label(version.number),
        "as_json": _content_json(version.read()),
    }


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
        _session_sentence(row),
        _("Running calls finish with the version that they began with."),
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
        "common": common_texts(row, proposal.before, proposal.after),
        "as_json": _content_json(proposal.content),
        "judged": proposal.judged,
        "to_fix": [*_findings_with_fields(row, proposal.judged.to_fix)],
        "advices": [*_findings_with_fields(row, proposal.judged.advices)],
        "breaks": proposal.breaks,
        "is_served_already": proposal.is_served_already,
        "who": who_sees(row, proposal.content),
        "hints": " · ".join(filter(None, _consequences(row, proposal))),
        "sessions": _session_sentence(row, proposal.content),
        "may_publish": has_right(request, "publish"),
        "reason": whom_to_ask(request, "publish"),
    }


def _findings_with_fields(
    row: PublishedRow, findings: Sequence[Finding]
) -> Iterator[tuple[str, str]]:
    """Yield each message with the form field to go to, "" for the whole form."""
    for finding in findings:
        field = finding.field
        if isinstance(row, DefinitionRow):
            field = editing_field(row, field)
        yield finding.message, field


def _session_sentence(row: PublishedRow, content: JsonObject | None = None) -> str:
    """Say how many open sessions the change affects."""
    servers = servers_offering(row, content)
    if not servers:
        return _("No server offers it, so no client notices.")
    count = Session.objects.filter(server__in=servers).count()
    if not count:
        return _(
            "No client is connected. Clients see the change the next time they ask."
        )
    return ngettext(
        "%(count)d session is open. Its client is notified if it listens, and"
        " otherwise sees the change when it asks.",
        "%(count)d sessions are open. Clients that listen are notified, the others"
        " see the change when they ask.",
        count,
    ) % {"count": count}


def servers_offering(row: PublishedRow, content: JsonObject | None) -> list[str]:
    """Return the servers that offer a row, as published or with this content."""
    if isinstance(row, Server):
        return [row.slug]
    served = row.published_content()
    key = row.kind_of_row, str(row.pk)
    tag_sets = [
        tags_and_requirements(row, each)[0] for each in (served, content or served)
    ]
    return [
        slug
        for slug, server in load_servers(stopped=False).items()
        if any(server.offers_definition(tags, key) for tags in tag_sets)
    ]


def _consequences(row: PublishedRow, proposal: Proposal[Any]) -> Iterator[str]:
    """Yield sentences about the hints of a tool, and about its tokens."""
    text = proposal.after.content.get(CHANGES, "")
    if isinstance(row, DefinitionRow) and row.from_code:
        whole = whole_definition(row, proposal.content, mcp)
        text = hint_words(whole.hints) if isinstance(whole, ToolDefinition) else ""
    yield capfirst(text)
    changed = {difference.field for difference in proposal.differences}
    if row.published_id and proposal.content.get("kind") == "skill":
        # The users of clients agreed to the digests of the skill's files.
        has_new_files = not changed.isdisjoint({"name", "description", "config"})
        yield _("Clients ask their users again.") if has_new_files else ""
    tokens = proposal.judged.tokens
    # Only tools are part of each request to a model.
    if tokens and isinstance(row, Tool):
        yield ngettext(
            "≈ %(count)d token of each request",
            "≈ %(count)d tokens of each request",
            tokens,
        ) % {"count": tokens}


def _version_label(number: int) -> str:
    return _("Version %(number)d") % {"number": number}


def served_label(row: PublishedRow) -> str:
    """Return the heading for what clients see now; "" if they see nothing."""
    if row.published is None:
        return ""
    return _("Now (version %(number)d)") % {"number": row.published.number}


def _version_comparison(
    row: PublishedRow, numbers: Sequence[int], registry: Registry
) -> dict[str, Any]:
    contents = [_version_content(row, number) for number in numbers]
    views = [client_view(row, content, registry) for content in contents]
    before, after = map(_version_label, numbers)
    return {
        "proposal": None,
        "differences": labeled_differences(row, differences(*views)),
        "common": common_texts(row, *views),
        "as_json": _content_json(contents[1]),
        "is_served_already": False,
        "before_label": before,
        "after_label": after,
    }


def _version_content(row: PublishedRow, number: int) -> JsonObject:
    version = DefinitionVersion.objects.of(row).filter(number=number).first()
    if version is None:
        raise missing_error(_("version"))
    return version.read()


def _next_number(row: PublishedRow) -> int:
    numbers = DefinitionVersion.objects.of(row).values_list("number", flat=True)
    # The first one is the newest.
    return (numbers.first() or 0) + 1
