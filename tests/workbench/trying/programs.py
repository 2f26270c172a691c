"""Random programs that write to two databases, tell clients, ask and fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from inspect import isawaitable
from typing import Any, Final, NamedTuple

from asgiref.sync import sync_to_async
from django.db import IntegrityError, transaction
from django.db.models import F
from hypothesis import strategies as st

from mcp_app import Context, SyncContext, ToolError
from mcp_app import changed as record_change
from tests.drill.models import Ledger, Stock
from tests.workbench.trying.dry_runs import ALIASES

KEYS: Final = ("a", "b", "c")
TOPICS: Final = ("tools", "prompts", "shop://orders", "shop://orders/1")
FORM: Final = {"type": "object", "properties": {"cake": {"type": "string"}}}
ACCEPTED: Final = {"action": "accept", "content": {"cake": "plum"}}


class Step(NamedTuple):
    """One thing that a program does: `name` is one of `WRITING` or of `OTHERS`."""

    name: str
    alias: str = "default"
    key: str = "a"
    inside: Sequence[Step] = ()


@dataclass
class Program:
    """Steps, and what of them was done in the last run."""

    steps: Sequence[Step]
    callbacks: list[str] = field(default_factory=list)
    """The functions given to `on_commit` that have run."""
    topics: list[str] = field(default_factory=list)

    def sync(self, ctx: SyncContext) -> str:
        for call in self._calls(ctx, self.write):
            call()
        return "done"

    async def run_async(self, ctx: Context) -> str:
        for call in self._calls(ctx, sync_to_async(self.write)):
            result = call()
            if isawaitable(result):
                await result
        return "done"

    def _calls(self, ctx: Any, write: Callable[[Step], Any]) -> Iterator[partial[Any]]:
        self.topics.clear()
        for at, step in enumerate(self.steps):
            if step.name == "ask":
                yield partial(ctx.elicit, "Which?", FORM, key=f"question {at}")
            elif step.name == "once":
                yield partial(
                    ctx.once, step.key, self.write, step._replace(name="insert")
                )
            elif step.name == "changed":
                self.topics.append(step.key)
                yield partial(ctx.changed, step.key)
            else:
                yield partial(write, step)

    def write(self, step: Step) -> None:
        """Do what needs no context; "error" raises."""
        if step.name == "error":
            raise ToolError("In the middle.")
        if step.name == "atomic":
            with suppress(ZeroDivisionError), transaction.atomic(using=step.alias):
                for each in step.inside:
                    self.write(each)
                if step.key == "a":
                    raise ZeroDivisionError
            return
        if step.name == "on_commit":
            note = partial(self.callbacks.append, step.key)
            transaction.on_commit(note, using=step.alias, robust=step.key == "a")
            return
        WRITING[step.name](step)


def fill() -> None:
    for alias in ALIASES:
        for key in KEYS:
            Ledger.objects.using(alias).create(key=key, worker="there before")
            Stock.objects.using(alias).create(sku=key, price=1)


def clear() -> None:
    for alias in ALIASES:
        for model in (Ledger, Stock):
            model.objects.using(alias).all().delete()


def _insert(step: Step) -> None:
    Ledger.objects.using(step.alias).create(key=step.key, worker="a dry run")


def _bulk(step: Step) -> None:
    rows = [Ledger(key=step.key, worker="a dry run") for _ in range(3)]
    Ledger.objects.using(step.alias).bulk_create(rows)


def _update(step: Step) -> None:
    Stock.objects.using(step.alias).filter(sku=step.key).update(level=F("level") + 1)


def _delete(step: Step) -> None:
    Stock.objects.using(step.alias).filter(sku=step.key).delete()


def _twice(step: Step) -> None:
    """Meet a constraint, in a block of its own."""
    with suppress(IntegrityError), transaction.atomic(using=step.alias):
        for _ in range(2):
            Stock.objects.using(step.alias).create(sku=f"new {step.key}", price=1)


def _record(step: Step) -> None:
    record_change("shop://stock")


WRITING: Final[dict[str, Callable[[Step], Any]]] = {
    "insert": _insert,
    "bulk": _bulk,
    "update": _update,
    "delete": _delete,
    "twice": _twice,
    "record": _record,
}


def _steps(*parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.tuples(*parts).map(Step._make)


_NONE: Final = st.just(())
_ALIASES: Final = st.sampled_from(ALIASES)
_KEYS: Final = st.sampled_from(KEYS)
_WRITES: Final = _steps(
    st.sampled_from([*WRITING, "on_commit"]), _ALIASES, _KEYS, _NONE
)
_BLOCKS: Final = _steps(
    st.just("atomic"), _ALIASES, _KEYS, st.lists(_WRITES, min_size=1, max_size=3)
)
_OTHERS: Final = st.one_of(
    _steps(st.just("once"), _ALIASES, _KEYS, _NONE),
    _steps(st.just("changed"), st.just("default"), st.sampled_from(TOPICS), _NONE),
    st.just(Step("ask")),
    st.just(Step("error")),
)
PROGRAMS: Final = st.lists(
    _WRITES | _WRITES | _BLOCKS | _OTHERS, min_size=1, max_size=8
).map(Program)
