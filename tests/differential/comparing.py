"""Sends generated exchanges to both servers, and counts the rules that explain them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, cast

from mcp.server.transport_security import TransportSecuritySettings

from tests.differential.exchanging import Side, answers
from tests.differential.generating import Exchange
from tests.differential.rules import LARGEST_SHARE, RULES, Difference, Rule
from tests.differential.twins import SLUG, theirs
from tests.wire.middleware import Application

LONGEST: Final = 1_000
"""Characters of an answer that are told."""


@dataclass
class Comparison:
    """What came of some exchanges."""

    exchanges: int = 0
    requests: int = 0
    versions: Counter[str] = field(default_factory=Counter)
    covered: Counter[str] = field(default_factory=Counter)
    """Rules -> exchanges that have a difference which it explains."""
    unexplained: list[str] = field(default_factory=list)

    def add(self, exchange: Exchange, differences: Iterable[Difference]) -> None:
        """Count an exchange with its differences."""
        self.exchanges += 1
        self.requests += len(exchange.steps)
        self.versions[exchange.version] += 1
        names = set()
        for each in differences:
            rule = explained(each)
            if rule is None:
                self.unexplained.append(told(each))
            else:
                names.add(rule.name)
        self.covered.update(names)

    @property
    def too_wide(self) -> list[str]:
        """The rules that explain more than their share."""
        most = self.exchanges * LARGEST_SHARE
        return [name for name, count in self.covered.items() if count > most]

    @property
    def idle(self) -> list[str]:
        """The rules that explain nothing."""
        return [rule.name for rule in RULES if not self.covered[rule.name]]

    def table(self) -> str:
        """Return the rules with their counts, the widest first, as Markdown."""
        lines = ["| rule | exchanges | of all | by |", "|---|---:|---:|---|"]
        for rule in sorted(RULES, key=lambda each: -self.covered[each.name]):
            count = self.covered[rule.name]
            share = count / max(self.exchanges, 1)
            lines.append(f"| {rule.name} | {count} | {share:.1%} | {rule.section} |")
        return "\n".join(lines)

    def report(self) -> str:
        """Return the table, how much was asked, and which rules are wrong."""
        lines = [self.table(), f"{self.exchanges} exchanges, {self.requests} requests"]
        lines += [f"  {each}: {count}" for each, count in sorted(self.versions.items())]
        lines += [f"The rule {name!r} explains too much." for name in self.too_wide]
        lines += [f"The rule {name!r} explains nothing." for name in self.idle]
        return "\n".join([*lines, ""])


def explained(difference: Difference) -> Rule | None:
    """Return the first rule that explains a difference."""
    return next((rule for rule in RULES if rule.explains(difference)), None)


def told(difference: Difference) -> str:
    """Say what a person needs to judge a difference, and to see it again."""
    exchange, step = difference.exchange, difference.step
    return "\n".join(
        [
            f"exchange {exchange.number} ({exchange.kind}, {exchange.version},"
            f" {'streams' if exchange.streams else 'JSON'}):",
            f"  {step.method} {dict(step.headers)}",
            f"  {step.body.decode('utf-8', 'replace')[:LONGEST]}",
            *(
                f"  {side} {answer.status} {json.dumps(answer.messages)[:LONGEST]}"
                for side, answer in (
                    ("ours  ", difference.ours),
                    ("theirs", difference.theirs),
                )
            ),
        ]
    )


@asynccontextmanager
async def their_sides() -> AsyncIterator[dict[bool, Side]]:
    """Give the official SDK's server twice: by whether it streams."""
    anywhere = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    async with AsyncExitStack() as stack:
        sides = {}
        for streams in (True, False):
            application = theirs().streamable_http_app(
                json_response=not streams, transport_security=anywhere
            )
            lifespan = application.router.lifespan_context(application)
            await stack.enter_async_context(lifespan)
            sides[streams] = Side(cast("Application", application), "/mcp")
        yield sides
    await _end_watcher()


async def _end_watcher() -> None:
    """End the task in which sse_starlette looks for the end of a server, for ever."""
    watchers = [
        task
        for task in asyncio.all_tasks()
        if getattr(task.get_coro(), "__name__", "") == "_shutdown_watcher"
    ]
    for task in watchers:
        task.cancel()
    await asyncio.gather(*watchers, return_exceptions=True)


async def compared(ours: Application, exchanges: Iterable[Exchange]) -> Comparison:
    """Let both servers answer, and compare."""
    comparison, side = Comparison(), Side(ours, f"/mcp/{SLUG}")
    async with their_sides() as others:
        for exchange in exchanges:
            found = await answers(exchange, side, others[exchange.streams])
            comparison.add(
                exchange,
                [
                    Difference(exchange, step, mine, their)
                    for step, (mine, their) in zip(exchange.steps, found, strict=True)
                    if mine != their
                ],
            )
    return comparison
