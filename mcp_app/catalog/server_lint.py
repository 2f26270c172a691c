"""What lint says of a server: what its definitions are together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.catalog.findings import Finding, advice, counted, must_fix, ordered
from mcp_app.catalog.schema_lint import named
from mcp_app.catalog.shown import Shown, tokens
from mcp_app.catalog.text_lint import hidden_findings
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.rules import visible
from mcp_app.interface.server import ServerDefinition

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


def server_findings(
    server: ServerDefinition, definitions: Sequence[Definition]
) -> list[Finding]:
    """Return what is wrong with a server, given all that it offers; the worst first.

    What a definition has by itself is left to `lint.findings`.
    """
    title = server.title or server.slug
    tools = [each for each in definitions if isinstance(each, ToolDefinition)]
    return ordered(
        [
            *_texts(server),
            *_twice(title, definitions),
            *_many(title, tools),
            *_described_alike(tools),
        ]
    )


def _texts(server: ServerDefinition) -> Iterator[Finding]:
    yield from hidden_findings(
        [
            Shown("title", server.title),
            Shown("description", server.description, lines=True),
            Shown("instructions", server.instructions, lines=True),
        ]
    )
    count = len(server.instructions.split())
    if count > MANY_WORDS:
        message = _(
            "The instructions have %(count)s words; more than %(limit)s are much for "
            "something that is read with every connection."
        ) % {"count": counted(count), "limit": counted(MANY_WORDS)}
        yield advice("instructions-long", "instructions", message)


def _twice(title: str, definitions: Iterable[Definition]) -> Iterator[Finding]:
    identities = Counter(map(_identity, definitions))
    for (kind, value), count in identities.items():
        if count > 1:
            field, message = _UNIQUE[kind]
            shown = {"server": title, "value": visible(value)}
            yield must_fix("twice", field, message % shown)


def _identity(definition: Definition) -> tuple[type[Definition], str]:
    field, _message = _UNIQUE[type(definition)]
    return type(definition), getattr(definition, field)


def _many(title: str, tools: Sequence[ToolDefinition]) -> Iterator[Finding]:
    if len(tools) > MANY_TOOLS:
        message = _(
            "%(server)s offers %(count)s tools. Cursor shows at most %(limit)s, and "
            "models choose worse among many. Use tags to split it."
        )
        shown = {"count": counted(len(tools)), "limit": MANY_TOOLS}
        yield advice("tools-many", "", message % {"server": title, **shown})
    # Resources and prompts are listed to people; models carry the tools.
    count = sum(map(tokens, tools))
    if count > MANY_TOKENS:
        message = _(
            "The tools of %(server)s take ≈ %(count)s tokens of the model's memory on "
            "every request; more than %(limit)s is much. Shorten descriptions, or use "
            "tags to split it."
        )
        shown = {"count": counted(count), "limit": counted(MANY_TOKENS)}
        yield advice("tokens-many-in-all", "", message % {"server": title, **shown})


def _described_alike(tools: Iterable[ToolDefinition]) -> Iterator[Finding]:
    alike: dict[str, list[str]] = {}
    for tool in tools:
        text = str(tool.description).strip()
        if text:
            alike.setdefault(text, []).append(tool.name)
    for names in alike.values():
        if len(set(names)) > 1:
            message = _(
                "The tools %(names)s have the same description, so models cannot tell "
                "which one to use."
            )
            shown = {"names": named(names)}
            yield advice("description-twice", "description", message % shown)
