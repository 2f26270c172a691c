"""The TypeScript SDKs: `@modelcontextprotocol/sdk`, and its successor in both eras.

The older package knows no stateless era.  A program takes all steps in one process and
prints a report; here is what the report must say.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.clients import facts
from tests.clients.facts import STATEFUL, STATELESS
from tests.clients.node import report_of
from tests.clients.person import MODEL_SAYS, ROOT

PROGRAMS: Final = {
    "sdk_v1": ("sdk_v1.mjs", STATEFUL),
    "sdk_v2 stateful": ("sdk_v2.mjs", STATEFUL),
    "sdk_v2 stateless": ("sdk_v2.mjs", STATELESS),
}

PROGRESSED: Final = [[i, 20] for i in range(1, 21)]
LATE: Final = "Received a progress notification for an unknown token"
"""Of one chunk the SDKs hand the answer on first, and then know no progress of it."""

EXACT: Final[dict[str, object]] = {
    "content": facts.CONTENT,
    "structured": ["42", {"result": 42}],
    "reconnecting": facts.RECONNECTED,
    "elicitation": {
        "said": [
            "blue of drill_ask",
            "blue of drill_ask_sync",
            "blue of drill_ask_database",
        ],
        "asked": ["Which colour?"] * 3,
    },
    "refusal": [
        [True, "The question was declined."],
        [True, "The question was cancelled."],
    ],
    "visiting": {
        "said": ["accepted", "declined", "cancelled"] * 2,
        "visits": [facts.SIGN_IN] * 6,
    },
    # One line of the first call, whatever ran again, and one of the call that counts.
    "twice": {"said": "yes again", "lines": {"result": 2}},
    "sampling": f"LLM response: {MODEL_SAYS}",
    "together": f"{MODEL_SAYS} Alice, with 1 roots",
    "rounds": "Alice likes blue.",
    "askingPrompt": ["Use this context: test context"],
    "reading": {uri: [contents] for uri, contents in facts.RESOURCES.items()},
    "prompting": {name: content for name, (_, content) in facts.PROMPTS.items()},
    "completion": ["test", "testValue1", "testValue2"],
    "cancelling": [True, True, "2"],
    "sideBySide": [str(2 * i) for i in range(20)],
    "mirrored": [f"Region: {r}" for r in ("eu-west-1", "Zürich", " padded ", "")],
}

EXACT_OF_ERA: Final[dict[str, dict[str, object]]] = {
    STATEFUL: {
        "ping": {},
        "logging": [
            ["error", "heard"],
            ["info", "Tool execution started"],
            ["info", "Tool processing data"],
            ["info", "Tool execution completed"],
        ],
        "identifiers": {
            "strings": ["string", "string"],
            "different": True,
            "onlyTheAccepted": True,
        },
        "subscribing": {"afterUnsubscribing": False},
        "changes": True,
    },
    STATELESS: {
        "identifiers": [False],
        "logging": {"silent": 0, "logged": [["error", "heard"]]},
        "listening": {
            "honored": {
                "toolsListChanged": True,
                "resourceSubscriptions": [facts.WATCHED],
            },
            "heard": [
                "notifications/resources/updated",
                "notifications/tools/list_changed",
            ],
            "uris": [facts.WATCHED],
            "closed": "local",
        },
    },
}

INVALID_PARAMS = -32602

# The second SDK turns the older code into the newer one before its user sees it.
NOT_FOUND: Final = {
    "sdk_v1": -32002,
    "sdk_v2 stateful": INVALID_PARAMS,
    "sdk_v2 stateless": INVALID_PARAMS,
}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.xdist_group(f"TypeScript {name}"))
        for name in PROGRAMS
    ],
)
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def era(program: str) -> str:
    return PROGRAMS[program][1]


@pytest.fixture(scope="module")
def report(endpoint: str, program: str, era: str) -> dict[str, Any]:
    script, _ = PROGRAMS[program]
    word = {STATEFUL: "stateful", STATELESS: "stateless"}[era]
    return report_of(script, endpoint, word)


@pytest.fixture
def steps(report: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = report["steps"]
    return found


@pytest.mark.parametrize(("step", "expected"), EXACT.items(), ids=EXACT.keys())
def test_step(steps: dict[str, Any], step: str, expected: object) -> None:
    assert steps[step] == expected


def test_progress(steps: dict[str, Any]) -> None:
    assert steps["progress"] == {"said": "done 20", "progressed": PROGRESSED}


def check_progress_in_order(steps: dict[str, Any]) -> None:
    """Where all messages share a stream, the last may come with the answer."""
    seen = steps["progress"]
    assert seen["said"] == "done 20"
    assert seen["progressed"]
    assert seen["progressed"] == PROGRESSED[: len(seen["progressed"])]


def test_steps_of_the_era(steps: dict[str, Any], era: str) -> None:
    expected = EXACT_OF_ERA[era]
    assert {step: steps[step] for step in expected} == expected


def test_client_saw_no_fault(report: dict[str, Any]) -> None:
    assert [each for each in report["faults"] if LATE not in each] == []


def test_negotiation(steps: dict[str, Any], era: str) -> None:
    negotiated = steps["negotiation"]
    assert (negotiated["revision"], negotiated["named"]) == (era, True)
    assert (
        negotiated["capabilities"].items()
        >= {
            "tools": {"listChanged": True},
            "prompts": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "logging": {},
            "completions": {},
        }.items()
    )


def test_lists(steps: dict[str, Any]) -> None:
    tools = steps["tools"]
    assert tools[0] == "test_simple_text"
    assert len(tools) == len(set(tools))
    assert sum(name.startswith("plain_") for name in tools) == facts.PLAIN_TOOLS
    assert steps["resources"][0] == facts.STATIC_TEXT
    assert facts.TEMPLATE in steps["templates"]
    assert set(facts.PROMPTS) <= set(steps["prompts"])


def test_whoami(steps: dict[str, Any], program: str, era: str) -> None:
    caller = steps["whoami"]
    assert caller["client"] == program.split(maxsplit=1)[0]
    assert caller["revision"] == era
    assert caller["session"] is (era == STATEFUL)


def test_elicited_defaults(steps: dict[str, Any]) -> None:
    assert "Jane Smith" in steps["defaults"]
    assert "action=accept" in steps["defaults"]


def test_roots(steps: dict[str, Any]) -> None:
    assert ROOT in steps["roots"]


def test_errors(steps: dict[str, Any], program: str) -> None:
    errors = steps["errors"]
    assert errors["tool"]["thrown"] == INVALID_PARAMS
    assert errors["prompt"]["thrown"] == INVALID_PARAMS
    assert errors["resource"] == {
        "thrown": NOT_FOUND[program],
        "data": {"uri": facts.ABSENT},
    }


def test_failures_of_tools(steps: dict[str, Any]) -> None:
    told, ordered, raised, incomplete = steps["failures"]
    assert told == [True, facts.FAILURE]
    assert ordered == [True, "This error was ordered by the caller."]
    assert raised[0] is True
    assert "ordered by the caller" not in raised[1]
    assert incomplete[0] is True
    assert "b" in incomplete[1]
