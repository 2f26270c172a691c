"""What lint says of a server and all its definitions together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.catalog.app_lint import server_app_findings
from mcp_app.catalog.definition_texts import DefinitionText, tokens
from mcp_app.catalog.findings import Finding, advice, count_text, must_fix, worst_first
from mcp_app.catalog.schema_lint import hidden_findings, names_text
from mcp_app.interface.definitions import (
    Definition,
    EventDefinition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.rules import visible
from mcp_app.interface.server import (
    CALL_READING_TOOL,
    CALL_TOOL,
    PAGE_SIZE,
    SEARCH_TOOLS,
    ServerDefinition,
)

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

MANY_TOOLS: Final = 40
MANY_TOKENS: Final = 10_000
MANY_WORDS: Final = 500

_UNIQUE: Mapping[type[Definition], tuple[str, _StrPromise]] = {
    ToolDefinition: (
        "name",
        gettext_lazy("Another tool of the server %(server)s is called %(value)s."),
    ),
    PromptDefinition: (
        "name",
        gettext_lazy("Another prompt of the server %(server)s is called %(value)s."),
    ),
    EventDefinition: (
        "name",
        gettext_lazy("Another event of the server %(server)s is called %(value)s."),
    ),
    ResourceDefinition: (
        "uri",
        gettext_lazy(
            "Another resource of the server %(server)s has the address %(value)s."
        ),
    ),
    ResourceTemplateDefinition: (
        "uri_template",
        gettext_lazy(
            "Another template of the server %(server)s has the pattern %(value)s."
        ),
    ),
}
"""By type: the column in which definitions must differ, and what is said if not."""

_LISTS: Mapping[type[Definition], _StrPromise] = {
    ToolDefinition: gettext_lazy("tools"),
    PromptDefinition: gettext_lazy("prompts"),
    EventDefinition: gettext_lazy("event types"),
    ResourceDefinition: gettext_lazy("resources"),
    ResourceTemplateDefinition: gettext_lazy("resource templates"),
}


def server_findings(
    server: ServerDefinition, definitions: Sequence[Definition]
) -> list[Finding]:
    """Return what is wrong with a server, given all that it offers; the worst first.

    What is wrong with a single definition is left to `lint.findings`.
    """
    title = server.title or server.slug
    tools = [each for each in definitions if isinstance(each, ToolDefinition)]
    listed = [tool for tool in tools if server.lists_tool(tool.tags)]
    others = [each for each in definitions if not isinstance(each, ToolDefinition)]
    return worst_first(
        [
            *_text_findings(server),
            *_duplicate_findings(title, definitions),
            *_reserved_name_findings(server, tools),
            *_tool_count_findings(title, listed),
            *_approval_findings(server, tools),
            *server_app_findings(title, definitions),
            *_page_findings(title, server.page_size, [*listed, *others]),
            *_described_alike(tools),
        ]
    )


def _text_findings(server: ServerDefinition) -> Iterator[Finding]:
    yield from hidden_findings(
        [
            DefinitionText("title", server.title),
            DefinitionText("description", server.description, lines=True),
            DefinitionText("instructions", server.instructions, lines=True),
        ]
    )
    count = len(server.instructions.split())
    if count > MANY_WORDS:
        message = _(
            "The instructions have %(count)s words; more than %(limit)s are a lot for"
            " a text that the model reads with every connection."
        ) % {"count": count_text(count), "limit": count_text(MANY_WORDS)}
        yield advice("instructions-long", "instructions", message)
    if server.listed and not (server.description.strip() and server.version):
        message = _("Everybody may read about it: give it a description and a version.")
        yield advice("card-thin", "listed", message)


def _reserved_name_findings(
    server: ServerDefinition, tools: Iterable[ToolDefinition]
) -> Iterator[Finding]:
    for tool in tools if server.uses_search else ():
        if tool.name in (SEARCH_TOOLS, CALL_READING_TOOL, CALL_TOOL):
            message = _(
                "“%(name)s” is one of the tools by which clients of the server"
                " %(server)s search. Choose another name."
            )
            values = {"name": tool.name, "server": server.title or server.slug}
            yield must_fix("twice", "name", message % values)


def _approval_findings(
    server: ServerDefinition, tools: Iterable[ToolDefinition]
) -> Iterator[Finding]:
    names = [tool.name for tool in tools if tool.approval is not None]
    if names and server.is_public:
        message = _(
            "%(server)s lets people in without a user, and then nobody can agree to"
            " calls of %(names)s. Let only people in who sign in."
        )
        values = {"server": server.title or server.slug, "names": names_text(names)}
        yield must_fix("approval-without-user", "access", message % values)


def _duplicate_findings(
    title: str, definitions: Iterable[Definition]
) -> Iterator[Finding]:
    identities = Counter(
        (type(each), getattr(each, _UNIQUE[type(each)][0])) for each in definitions
    )
    for (kind, value), count in identities.items():
        if count > 1:
            field, message = _UNIQUE[kind]
            values = {"server": title, "value": visible(value)}
            yield must_fix("twice", field, message % values)


def _tool_count_findings(
    title: str, tools: Sequence[ToolDefinition]
) -> Iterator[Finding]:
    if len(tools) > MANY_TOOLS:
        message = _(
            "%(server)s offers %(count)s tools. Cursor shows at most %(limit)s, and"
            " models choose worse if there are many. Use tags to split the server, let"
            " its clients search, or name fewer in code (only=[…])."
        )
        values = {"count": count_text(len(tools)), "limit": MANY_TOOLS}
        yield advice("tools-many", "", message % {"server": title, **values})
    # Only tools take tokens of the model; people read the other lists.
    count = sum(map(tokens, tools))
    if count > MANY_TOKENS:
        message = _(
            "The tools of %(server)s take ≈ %(count)s tokens of the model's memory on"
            " every request; more than %(limit)s is a lot. Shorten descriptions, or"
            " use tags to split the server."
        )
        values = {"count": count_text(count), "limit": count_text(MANY_TOKENS)}
        yield advice("tokens-many-in-all", "", message % {"server": title, **values})


def _page_findings(
    title: str, page_size: int, definitions: Iterable[Definition]
) -> Iterator[Finding]:
    """Yield the lists that take more than one page.

    With 247 tools, 8 of 23 clients that were tried read only the first page.
    """
    for kind, count in Counter(map(type, definitions)).items():
        if count <= page_size:
            continue
        message = _(
            "%(server)s lists %(count)s %(entries)s on pages of %(size)s. Many clients"
            " read only the first page and never show the rest. Raise the page size"
            " (at most %(limit)s), or use tags to split the server."
        )
        counts = {"count": count, "size": page_size, "limit": PAGE_SIZE}
        values: dict[str, object] = {n: count_text(each) for n, each in counts.items()}
        values |= {"server": title, "entries": _LISTS[kind]}
        yield advice("page-too-small", "page_size", message % values)


def _described_alike(tools: Iterable[ToolDefinition]) -> Iterator[Finding]:
    alike: dict[str, list[str]] = {}
    for tool in tools:
        alike.setdefault(str(tool.description).strip(), []).append(tool.name)
    for text, names in alike.items():
        if text and len(set(names)) > 1:
            message = _(
                "The tools %(names)s have the same description, so models cannot tell "
                "which one to use."
            )
            values = {"names": names_text(names)}
            yield advice("description-twice", "description", message % values)
