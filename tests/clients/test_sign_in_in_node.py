"""The TypeScript SDKs sign in, refresh, and sign in anew when they were ended."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.browser.loopback import Back
from tests.clients.node import HERE, MODULES, NODE, PATIENCE_S
from tests.clients.people import Person
from tests.clients.signing import Site
from tests.drill.programs import Program

pytestmark = pytest.mark.xdist_group("signing in")

PROGRAMS: Final = ("sdk_v1", "sdk_v2 stateful", "sdk_v2 stateless")
SUM: Final = {"result": 42}
REFUSED: Final = {"name": "UnauthorizedError", "message": "Unauthorized"}
ENDED: Final = "This connection has ended. Sign in again."


@pytest.fixture(scope="module")
def report(signed: Site, kim: Person, back: Back) -> dict[str, Any]:
    def answer(asked: dict[str, str]) -> dict[str, str]:
        if "open" in asked:
            kim.lets_in(asked["open"])
            return back.gets()
        kim.ends(signed.url, asked["end"])
        return {}

    if not MODULES.is_dir():
        pytest.skip("node_modules is missing: `make node` installs it.")
    with Program(
        [NODE, HERE / "sign_in.mjs", signed.url, back.redirect], pipes=True
    ) as program:
        while "report" not in (asked := json.loads(program.hear(PATIENCE_S))):
            program.say(json.dumps(answer(asked)))
        program.close_input()
        assert program.wait() == 0, program.output
    found: dict[str, Any] = asked["report"]
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_signs_in_lists_and_calls(report: dict[str, Any], program: str) -> None:
    found = report[program]
    assert found["refused"] == REFUSED
    assert found["same"], "The state of the program came not back."
    assert found["listed"] > 1
    assert found["added"] == SUM


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_refreshes_when_its_key_is_refused(
    report: dict[str, Any], program: str
) -> None:
    assert report[program]["refreshed"] == {"added": SUM, "key": True, "refresh": True}


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_is_ended_and_signs_in_anew(
    report: dict[str, Any], program: str, signed: Site
) -> None:
    """It forgets its keys, but not the registration."""
    found = report[program]
    ended = found["ended"]
    assert ended["next"] == REFUSED
    assert ended["kept"] is None
    host = signed.url.partition("/mcp")[0]
    document = f"{host}/.well-known/oauth-protected-resource/mcp/signed"
    for challenge in ended["seen"]:
        assert f'resource_metadata="{document}"' in challenge
        assert f'error_description="{ENDED}"' in challenge
    assert ended["seen"] != []
    assert found["anew"] == {"added": SUM, "same": True}
    assert found["registered"] == 1
