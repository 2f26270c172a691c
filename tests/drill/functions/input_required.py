"""Fixtures of the suite that need input in the middle (SEP-2322)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_app import ClientCannot, Context, Elicit, Roots, Sample, mcp
from tests.drill.functions.answers import (
    Colour,
    Confirmation,
    Name,
    Situation,
    accepted,
)


@mcp.function("conformance.input_elicitation")
async def input_elicitation(ctx: Context) -> str:
    answer = await ctx.elicit("What is your name?", Name, key="user_name")
    return f"Hello, {accepted(answer).name}!"


@mcp.function("conformance.input_sampling")
async def input_sampling(ctx: Context) -> str:
    sampled = await ctx.sample(
        "What is the capital of France?", max_tokens=100, key="capital_question"
    )
    return sampled.text


@mcp.function("conformance.input_roots")
async def input_roots(ctx: Context) -> str:
    roots = await ctx.list_roots(key="client_roots")
    return "Roots: " + ", ".join(root.uri for root in roots)


@mcp.function("conformance.input_state")
async def input_state(ctx: Context) -> str:
    answer = await ctx.elicit("Please confirm", Confirmation, key="confirm")
    return "state-ok" if accepted(answer).ok else "state-ok, not confirmed"


@mcp.function("conformance.input_multiple")
async def input_multiple(ctx: Context) -> str:
    answers: Mapping[str, Any] = await ctx.ask(
        user_name=Elicit("What is your name?", Name),
        greeting=Sample("Generate a greeting", max_tokens=50),
        client_roots=Roots(),
    )
    name = accepted(answers["user_name"]).name
    roots = len(answers["client_roots"])
    return f"{answers['greeting'].text} {name}, with {roots} roots"


@mcp.function("conformance.input_rounds")
async def input_rounds(ctx: Context) -> str:
    name = accepted(
        await ctx.elicit("Step 1: What is your name?", Name, key="step1")
    ).name
    colour = accepted(
        await ctx.elicit("Step 2: What is your favorite color?", Colour, key="step2")
    ).color
    return f"{name} likes {colour}."


@mcp.function("conformance.input_capabilities")
async def input_capabilities(ctx: Context) -> str:
    """Ask what this client can answer: the person, else the model."""
    try:
        return await input_elicitation(ctx)
    except ClientCannot:
        return await input_sampling(ctx)


@mcp.function("conformance.input_prompt")
async def input_prompt(ctx: Context) -> str:
    answer = await ctx.elicit(
        "What context should the prompt use?", Situation, key="user_context"
    )
    return f"Use this context: {accepted(answer).context}"
