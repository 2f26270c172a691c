"""Our answers are those of the official SDK, but for differences that have a rule."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from pytest_django import DjangoDbBlocker

from tests.differential import rules, twins
from tests.differential.comparing import Comparison, compared, explained
from tests.differential.exchanging import Answer
from tests.differential.generating import KINDS, VERSIONS, Exchange, exchange, exchanges
from tests.differential.rules import RULES, Difference
from tests.wire.middleware import (
    Application,
    AsgiMessage,
    Receive,
    Scope,
    Send,
    WireCheck,
)

SEED = 1
COUNT = 100


@pytest.fixture(scope="module")
def twin_row(served_rows: None, django_db_blocker: DjangoDbBlocker) -> None:
    """The server that offers the twins."""
    from tests.differential.running import publish  # noqa: PLC0415 - the registry

    with django_db_blocker.unblock():
        publish()


@pytest.fixture
def twin(twin_row: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the twins be served, instead of the behaviours."""
    monkeypatch.setattr("tests.behaviours.registry", twins.ours())


@pytest.fixture
def site(twin: None, application: WireCheck) -> Iterator[WireCheck]:
    """The site, whose messages are checked, too."""
    yield application
    assert application.checked > 0


async def test_a_hundred_exchanges(site: WireCheck) -> None:
    comparison = await compared(site, exchanges(SEED, COUNT))
    assert comparison.unexplained == []
    assert comparison.too_wide == []
    assert comparison.exchanges == COUNT
    assert comparison.versions.keys() == set(VERSIONS)


Change = Callable[[bytes], bytes]

FAULTS: dict[str, tuple[str, Change]] = {
    "another code": (
        "unknown methods",
        lambda body: body.replace(b"-32601", b"-32600"),
    ),
    "another text": ("reads", lambda body: body.replace(b"a note", b"an ode")),
    "a member less": ("calls", lambda body: body.replace(b'"isError":true', b'"x":1')),
    "another id": ("ids", lambda body: body.replace(b'"id":11', b'"id":19')),
    "a result for an error": (
        "missing members",
        lambda body: body.replace(b'"error":', b'"result":'),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_is_found(site: WireCheck, fault: str) -> None:
    kind, change = FAULTS[fault]
    chosen = [each for each in exchanges(SEED, 5 * len(KINDS)) if each.kind == kind]
    found = await compared(broken(site, change), chosen)
    assert found.unexplained
    assert kind in found.unexplained[0]


def broken(site: Application, change: Change) -> Application:
    """Return a site that says something else."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        async def changed(message: AsgiMessage) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": change(message.get("body", b""))}
            await send(message)

        await site(scope, receive, changed)

    return application


# -- what is generated -----------------------------------------------------------------


def test_a_number_names_an_exchange() -> None:
    assert list(exchanges(7, 20)) == list(exchanges(7, 20))
    assert exchange(7, 3) == list(exchanges(7, 4))[3]
    assert exchange(7, 3) != exchange(8, 3)


def test_every_kind_is_drawn() -> None:
    assert {each.kind for each in exchanges(SEED, COUNT)} == KINDS.keys()


# -- the rules -------------------------------------------------------------------------


def test_there_are_few_rules_and_each_says_why() -> None:
    assert len(RULES) <= rules.MOST
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.section and rule.why for rule in RULES)


def difference(ours: Answer, theirs: Answer, number: int = 0) -> Difference:
    found = exchange(SEED, number)
    return Difference(found, found.steps[-1], ours, theirs)


RIGHT = Answer(200, [{"id": 1, "result": {}}])
WRONG = Answer(500)


def test_what_has_no_rule_is_told() -> None:
    comparison, found = Comparison(), difference(RIGHT, WRONG)
    assert explained(found) is None
    comparison.add(found.exchange, [found])
    (told,) = comparison.unexplained
    assert json.dumps(RIGHT.messages) in told
    assert "theirs 500" in told


def test_a_rule_that_explains_much_is_too_wide() -> None:
    name, comparison = covered(10)
    assert comparison.too_wide == []
    assert name not in comparison.idle
    assert len(comparison.idle) == len(RULES) - 1
    assert f"| {name} | 10 | 10.0% |" in comparison.table()
    _, comparison = covered(11)
    assert comparison.too_wide == [name]


def covered(count: int) -> tuple[str, Comparison]:
    """Return a comparison of which a rule explains so many of a hundred exchanges."""
    comparison = Comparison()
    chosen = next(
        each for each in exchanges(SEED, 1_000) if each.kind == "closed sessions"
    )
    deleted = next(step for step in chosen.steps if step.method == "DELETE")
    found = Difference(chosen, deleted, Answer(204), Answer(200))
    rule = explained(found)
    assert rule is not None
    for number in range(100):
        each: Exchange = replace(chosen, number=number)
        comparison.add(each, [found, found] if number < count else [])
    return rule.name, comparison
