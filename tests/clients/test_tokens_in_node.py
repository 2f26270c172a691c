"""Access tokens in the hands of the TypeScript SDKs, and of the inspector."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.clients.facts import STATEFUL, STATELESS
from tests.clients.guarded import (
    CANCELLED,
    SAID,
    SELDOM,
    UNAUTHORIZED,
    Guarded,
    bearer,
    challenge,
)
from tests.clients.node import HERE, MODULES, NODE, PATIENCE_S, node
from tests.clients.test_inspector import ERAS, INSPECTOR
from tests.drill.programs import Program
from tests.marks import long_cases

pytestmark = pytest.mark.xdist_group("access tokens")

SSE: Final = ("sdk_v1 on SSE", "sdk_v2 on SSE")
PROGRAMS: Final = ("sdk_v1", "sdk_v2 stateful", "sdk_v2 stateless", *SSE)
GOOD: Final = "good"
NEGOTIATED: Final = (
    "Version negotiation failed: the server requires authorization (HTTP 401)"
)
AUTHORIZATION: Final = 3
"""The exit status of the inspector where it is not let in."""


@pytest.fixture(scope="module")
def report(guarded: Guarded) -> dict[str, Any]:
    if not MODULES.is_dir():
        pytest.skip("node_modules is missing: `make node` installs it.")
    living = {name: guarded.token() for name in PROGRAMS}
    shown = {GOOD: guarded.token(), **guarded.refused}
    given = {"url": guarded.url, "shown": shown, "living": living, "seldom": SELDOM}
    with Program([NODE, HERE / "tokens.mjs"], pipes=True) as program:
        program.say(json.dumps(given))
        assert program.hear(PATIENCE_S) == "open\n"
        for token in living.values():
            guarded.operator.revokes(token)
        program.say("revoked")
        found: dict[str, Any] = json.loads(program.hear(PATIENCE_S))
    return found


def words(error: dict[str, Any]) -> str:
    """Return what an error says: the newer SDK has the body beside its own words."""
    return f"{error['message']} {error['text']}"


def codes(error: dict[str, Any]) -> set[object]:
    return {error["code"], error["status"]}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_good_token_lists_and_calls(report: dict[str, Any], program: str) -> None:
    found = report["refused"][GOOD][program]
    assert found["listed"] > 1
    assert found["structuredContent"] == {"result": 42}


@pytest.mark.parametrize("program", ["sdk_v1", "sdk_v2 stateful", "sdk_v2 stateless"])
def test_t20_a_model_reads_how_long_to_wait(
    report: dict[str, Any], program: str
) -> None:
    """And after that time it is answered."""
    found = report["limited"][program]
    assert found["text"].startswith("You call seldom too often: one person may call it")
    assert not found["refused"]


@pytest.mark.parametrize("shown", SAID)
@pytest.mark.parametrize("program", PROGRAMS)
def test_who_is_refused_is_told_why(
    report: dict[str, Any], program: str, shown: str
) -> None:
    found = report["refused"][shown][program]
    assert UNAUTHORIZED in codes(found["error"])
    if program in SSE:
        # It reads no body there, and its `fetch` is where the challenge is seen.
        assert "Non-200 status code (401)" in words(found["error"])
    else:
        assert SAID[shown] in words(found["error"])
    if program == "sdk_v2 stateless":
        assert found["error"]["message"] == NEGOTIATED
    [asked] = found["seen"]
    assert (asked["status"], asked["challenge"]) == (UNAUTHORIZED, challenge(shown))


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_token_that_is_revoked_meanwhile(
    report: dict[str, Any], program: str
) -> None:
    """What is open ends, and the next call is refused."""
    found = report["revoked"][program]
    assert SAID["revoked"] in words(found["next"]["thrown"])
    if program not in SSE:
        assert CANCELLED in found["call"]["thrown"]["message"]
        assert UNAUTHORIZED in codes(found["next"]["thrown"])
    refused = [each for each in found["seen"] if each["status"] == UNAUTHORIZED]
    assert {each["challenge"] for each in refused} == {challenge("revoked")}
    if program == "sdk_v2 stateless":
        assert found["ended"] == {"returned": "graceful"}
    else:
        # Its stream has ended: it asks for another one, and says what came of that.
        assert {each["method"] for each in refused} == {"GET", "POST"}
        assert any(UNAUTHORIZED in codes(each) for each in found["faults"])


def inspected(
    guarded: Guarded, era: str, home: Path, token: str
) -> subprocess.CompletedProcess[str]:
    header = [f"{name}: {value}" for name, value in bearer(token).items()]
    return node(
        *(INSPECTOR, "--cli", guarded.url, "--transport", "http"),
        *("--protocol-era", ERAS[era], "--format", "json", "--stored-auth-only"),
        *("--method", "tools/call", "--tool-name", "drill_add"),
        *("--tool-arg", "a=20", "b=22", *(["--header", *header] if header else [])),
        HOME=str(home),
    )


@pytest.mark.long
def test_the_inspector_with_a_good_token(
    guarded: Guarded, era: str, tmp_path: Path
) -> None:
    """It looks the tool up in the list before it calls it."""
    done = inspected(guarded, era, tmp_path, guarded.token())
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)["result"]
    assert result["structuredContent"] == {"result": 42}


@pytest.mark.parametrize(
    ("shown", "era"),
    [
        ("revoked", STATEFUL),
        *long_cases(
            *((each, STATEFUL) for each in SAID if each != "revoked"),
            ("revoked", STATELESS),
        ),
    ],
)
def test_the_inspector_says_why_it_is_refused(
    guarded: Guarded, era: str, tmp_path: Path, shown: str
) -> None:
    done = inspected(guarded, era, tmp_path, guarded.refused[shown])
    assert done.returncode == AUTHORIZATION
    error = json.loads(done.stderr or done.stdout)["error"]
    assert error["code"] == "auth_required"
    if era == STATEFUL:
        assert SAID[shown] in error["message"]
