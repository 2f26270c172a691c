"""A trial: what came of it, in both eras, and who is turned away."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Final

import pytest

from mcp_app import Context
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.principal import CONSOLE, Principal
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import (
    InternalError,
    ProtocolError,
    RequestRefused,
    Unavailable,
)
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.transports.in_process import Caller
from mcp_app.workbench.trying.trial import Plan, Trial, run_trial
from tests.asgi_client import EVERYTHING
from tests.scripting import STATEFUL, STATELESS, Play

pytestmark = [pytest.mark.usefixtures("scripted")]

ANA: Final = Principal(kind=CONSOLE, user_id="7", client="ana", permissions=frozenset())
NOBODY: Final = Principal(kind=CONSOLE, client="ana", permissions=frozenset())
ERAS: Final = [STATEFUL, STATELESS]


def plan_of(params: dict[str, Any], version: str, **more: Any) -> Plan:
    caller = Caller(
        principal=more.pop("principal", ANA),
        person="u7",
        revision=REVISIONS[version],
        name="Try it",
        capabilities=EVERYTHING,
    )
    given = {"server": "private", "method": "tools/call", "params": params}
    return Plan(**{**given, "caller": caller, **more})


@pytest.fixture
def tried(process: Process, play: Play) -> Callable[..., Any]:
    async def tried(
        script: Callable[[Any], Any], version: str, tool: str = "sync", **more: Any
    ) -> Trial:
        return await run_trial(plan_of(play.params(tool, script), version, **more))

    return tried


@pytest.mark.parametrize("version", REVISIONS)
async def test_what_came_of_it(tried: Any, version: str) -> None:
    trial: Trial = await tried(lambda ctx: "Hello.", version)
    assert trial.outcome is Outcome.ANSWERED
    assert trial.result["content"][0]["text"] == "Hello."
    assert trial.size == len(trial.messages[-1].text)
    assert json.loads(trial.messages[-1].text) == trial.answer
    assert trial.took_ms > 0
    assert not trial.error
    assert (trial.questions, trial.state, trial.refused) == ((), "", 0)


@pytest.mark.parametrize("version", ERAS)
async def test_a_crash_has_its_number(
    tried: Any, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    trial: Trial = await tried(lambda ctx: 1 / 0, version)
    assert trial.outcome is Outcome.CRASHED
    assert trial.failure in {vars(each).get("failure") for each in caplog.records}


@pytest.mark.parametrize(
    ("principal", "server", "status"),
    [
        (NOBODY, "private", 401),
        (ANA, "closed", 401),
        (Principal(kind=CONSOLE, user_id="999999"), "private", 403),
        (ANA, "guarded", 403),
        (ANA, "there-is-none", 404),
        (ANA, "off", 503),
    ],
)
async def test_who_is_turned_away(
    tried: Any, principal: Principal, server: str, status: int
) -> None:
    ran: list[object] = []
    trial: Trial = await tried(
        ran.append, STATELESS, principal=principal, server=server
    )
    assert trial.refused == status
    assert trial.reason
    assert ran == []
    assert trial.messages == ()


async def test_without_streams_only_the_answer_comes(tried: Any) -> None:
    async def says(ctx: Context) -> str:
        ctx.progress(1)
        return "said"

    for streams, count in ((True, 3), (False, 2)):
        trial: Trial = await tried(says, STATELESS, tool="async", streams=streams)
        assert len(trial.messages) == count


@pytest.mark.parametrize("version", ERAS)
async def test_what_no_server_would_read_is_refused(
    process: Process, play: Play, version: str
) -> None:
    """It does not wait for an answer that names no request."""
    ran: list[object] = []
    params = play.params("sync", ran.append)
    params["arguments"]["more"] = "a" * (process.limits.body + 1)
    trial = await run_trial(plan_of(params, version))
    said = f"The body is larger than {process.limits.body} bytes."
    assert (trial.refused, trial.reason, trial.error["message"]) == (413, said, said)
    assert ran == []


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        (RequestRefused(429, "Too many requests."), 429),
        (Unavailable("Too much runs."), 503),
        (InternalError("The server failed."), 0),
    ],
)
async def test_what_is_refused_before_it_runs_is_not_answered(
    tried: Any,
    process: Process,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    refusal: ProtocolError,
    status: int,
) -> None:
    def refuse(*_: object) -> None:
        raise refusal

    ran: list[object] = []
    monkeypatch.setattr(process, "check_share", refuse)
    trial: Trial = await tried(ran.append, version)
    assert (trial.refused, trial.reason) == (status, refusal.message)
    assert trial.outcome is Outcome.FAILED
    assert ran == []


@pytest.mark.parametrize("mcp", [{"LIMITS": {"dry_run": 0.3}}])
async def test_a_dry_run_says_how_much_time_it_had(tried: Any) -> None:
    trial: Trial = await tried(lambda ctx: time.sleep(1), STATELESS, is_dry=True)
    assert trial.outcome is Outcome.TIMED_OUT
    assert "did not finish within 0.3 seconds" in trial.result["content"][0]["text"]


URI: Final = "test://static-text"


@pytest.mark.parametrize("is_dry", [False, True])
async def test_a_stopped_resource_is_not_read(process: Process, is_dry: bool) -> None:
    """A dry run has a catalog of its own, and offers nothing more in it."""
    await process.gate.wait_until_fresh(process.loop.time())
    catalog = process.catalogs.by_slug["default"]
    entry = catalog.resources[URI]
    off = catalog.with_changes({"resources": {URI: None}}, {"resources": {URI: entry}})
    servers = {**process.catalogs.by_slug, "default": off}
    request = {"server": "default", "method": "resources/read", "is_dry": is_dry}
    plan = plan_of({"uri": URI}, STATELESS, principal=NOBODY, **request)
    with pytest.MonkeyPatch.context() as patched:
        # The next test begins with what this process has loaded.
        patched.setattr(process.catalogs, "by_slug", servers)
        trial = await run_trial(plan)
    assert "is switched off" in trial.error["message"]
    assert trial.outcome is Outcome.SWITCHED_OFF
