"""What lint says of texts: missing ones, long ones, and what hides in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from django.utils.translation import gettext as _

from mcp_app.catalog.findings import Finding, advice, count_text, must_fix
from mcp_app.catalog.token_cost import DefinitionText, estimate, prose
from mcp_app.interface.definitions import Definition, ToolDefinition
from mcp_app.interface.rules import text_problem

LONG_DESCRIPTION: Final = 1_024
"""Characters; OpenAI's models refuse more, Claude Code cuts at twice as many."""

HIDDEN: Final = "hidden-character"
"""The rule that no text has characters that nobody sees."""

_ORDER = re.compile(
    r"<important>"
    r"|ignore (?:all |any |the )*(?:previous|earlier|above|other) instructions"
    r"|do not (?:tell|inform|mention (?:this|it) to) the user"
    r"|without telling the user",
    re.IGNORECASE,
)


def description_findings(definition: Definition) -> Iterator[Finding]:
    """Yield what a description lacks, or has too much of."""
    text = str(definition.description)
    if not text.strip():
        yield _missing(definition)
    elif _letters(text) in {
        _letters(definition.name),
        _letters(str(definition.title)),
    }:
        message = _("The description only repeats the name. Say more.")
        yield advice("description-repeats-name", "description", message)
    if len(text) > LONG_DESCRIPTION:
        message = _(
            "The description has %(count)s characters (≈ %(tokens)s tokens). Some"
            " clients refuse or cut more than %(limit)s. Two to four sentences are"
            " enough."
        ) % {
            "count": count_text(len(text)),
            "tokens": count_text(estimate(text)),
            "limit": count_text(LONG_DESCRIPTION),
        }
        yield advice("description-long", "description", message)


def _missing(definition: Definition) -> Finding:
    if isinstance(definition, ToolDefinition):
        message = _(
            "The description is missing. The model reads it to decide when to use the "
            "tool: say what it does, when to use it, and what comes back."
        )
        return must_fix("description-missing", "description", message)
    message = _(
        "The description is missing. People read it in their client's menu. Write one"
        " sentence that says what this is."
    )
    return advice("description-missing", "description", message)


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def hidden_findings(shown: Iterable[DefinitionText]) -> Iterator[Finding]:
    """Yield the first hidden character of each column."""
    told: set[str] = set()
    for field, text, lines, place in shown:
        problem = text_problem(text, lines=lines)
        if problem and field not in told:
            told.add(field)
            message = f"{place}: {problem}" if place else problem
            yield must_fix(HIDDEN, field, message)


def order_findings(definition: Definition) -> Iterator[Finding]:
    """Yield texts that order the model about, as a poisoned definition does (T23)."""
    for field, text in prose(definition):
        if found := _ORDER.search(text):
            message = _(
                "“%(words)s” reads like a hidden instruction that has nothing to do"
                " with this definition. Clients that look for such instructions may"
                " refuse it."
            )
            yield advice("planted-order", field, message % {"words": found.group()})
