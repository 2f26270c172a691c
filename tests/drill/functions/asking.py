"""Fixtures of the suite that put one question to the client, in either era."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from mcp_app import ClientCannot, Context, mcp
from mcp_app.interface.questions import ElicitAnswer
from tests.drill.functions.answers import Name, accepted, described

Answer: TypeAlias = ElicitAnswer[dict[str, Any]]

USER_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}

DEFAULTS_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {
            "type": "string",
            "description": "User status",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {
            "type": "boolean",
            "description": "Verification status",
            "default": True,
        },
    },
    "required": [],
}


def _titled(**values: str) -> list[dict[str, str]]:
    return [{"const": value, "title": title} for value, title in values.items()]


OPTIONS: Final = ["option1", "option2", "option3"]

CHOICES_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {
            "type": "string",
            "oneOf": _titled(
                value1="First Option", value2="Second Option", value3="Third Option"
            ),
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {
            "type": "array",
            "items": {"type": "string", "enum": OPTIONS},
        },
        "titledMulti": {
            "type": "array",
            "items": {
                "anyOf": _titled(
                    value1="First Choice", value2="Second Choice", value3="Third Choice"
                )
            },
        },
    },
    "required": [],
}


@mcp.function("conformance.sampling")
async def sampling(ctx: Context, prompt: str) -> str:
    sampled = await ctx.sample(prompt, max_tokens=100)
    return f"LLM response: {sampled.text}"


@mcp.function("conformance.elicitation")
async def elicitation(ctx: Context, message: str) -> str:
    answer: Answer = await ctx.elicit(message, USER_FORM)
    return f"User response: {described(answer)}"


@mcp.function("conformance.elicitation_defaults")
async def elicitation_defaults(ctx: Context) -> str:
    answer: Answer = await ctx.elicit(
        "Please review and update the form fields with defaults", DEFAULTS_FORM
    )
    return f"Elicitation completed: {described(answer)}"


@mcp.function("conformance.elicitation_choices")
async def elicitation_choices(ctx: Context) -> str:
    answer: Answer = await ctx.elicit(
        "Please select options from the lists", CHOICES_FORM
    )
    return f"Elicitation completed: {described(answer)}"


@mcp.function("conformance.streaming_elicitation")
async def streaming_elicitation(ctx: Context) -> str:
    name = accepted(await ctx.elicit("What is your name?", Name)).name
    return f"Hello, {name}!"


@mcp.function("conformance.missing_capability")
async def missing_capability(ctx: Context) -> str:
    if "sampling" not in ctx.client.capabilities:
        raise ClientCannot(
            "This tool needs a client that can sample.", {"sampling": {}}
        )
    return "The client can sample."
