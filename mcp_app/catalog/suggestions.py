"""Suggestions of staff for arguments, and those that fit the text typed so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceTemplateDefinition,
)
from mcp_app.interface.questions import Completion

SUGGESTING: Mapping[type[Definition], str] = {
    PromptDefinition: "arguments",
    ResourceTemplateDefinition: "suggestions",
}
"""The column of suggestions, by the type of definition."""


def suggestions_of(definition: Definition) -> Mapping[str, Sequence[str]]:
    """Return the suggestions by the names of arguments or variables."""
    if isinstance(definition, PromptDefinition):
        arguments = definition.arguments
        return {each.name: each.suggestions for each in arguments if each.suggestions}
    if isinstance(definition, ResourceTemplateDefinition):
        return definition.suggestions
    return {}


def is_reference(suggestion: str) -> bool:
    """Whether a suggestion stands for a field's values: `{{shop.Customer.name}}`."""
    return suggestion.startswith("{{")


def references_in(definition: Definition) -> list[str]:
    """Return the suggestions of a definition that stand for values of fields."""
    texts = suggestions_of(definition).values()
    return [each for values in texts for each in values if is_reference(each)]


def fitting_suggestions(suggestions: Sequence[str], typed: str) -> Completion:
    """Return suggestions that begin with a text, then those that contain it.

    Case does not matter; otherwise they stay in their order.
    """
    wanted = typed.casefold()
    folded = [(suggestion, suggestion.casefold()) for suggestion in suggestions]
    first = [each for each, text in folded if text.startswith(wanted)]
    inside = [each for each, text in folded if wanted in text]
    return Completion([*dict.fromkeys([*first, *inside])])
