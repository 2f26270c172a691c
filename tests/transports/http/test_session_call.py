"""Plain calls in sessions answer as all others do, and go on without their client."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from typing import Any, Final

import pytest

from mcp_app.auth.token_cache import token_cache
from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.transports.http import plain_call
from mcp_app.transports.http.plain_call import PlainCall
from mcp_app.transports.http.stateless_call import SessionCall
from tests.asgi_client import Client
from tests.behaviours import Stage
from tests.streams.logging_rows import until
from tests.transports.http.differing import (
    META,
    PREFIX,
    Both,
    Request,
    call,
    changed,
    encoded,
    in_session,
    message,
    planted,
)
from tests.transports.http.recorded import recorded
from tests.transports.http.test_plain_call import BY, CORPUS, Crowd, both, crowd, mcp
from tests.wire.middleware import WireCheck

__all__ = ["both", "crowd", "mcp"]

pytestmark = pytest.mark.databases

STATEFUL: Final = [name for name, each in REVISIONS.items() if not each.stateless]
VERSION: Final = "2025-11-25"
METAS: Final[list[Any]] = [
    {},
    {"progressToken": 3},
    {"progressToken": "x"},
    {"progressToken": "x" * 3_000},
    {"progressToken": 1.5},
    {"example.org/more": 1},
    {f"{PREFIX}clientInfo": {"name": "x", "version": "1"}},
    {f"{PREFIX}protocolVersion": "2026-07-28"},
]
SUM: Final = call("drill_add", a=1, b=2)


def requests_of(sessions: dict[str, str]) -> Iterator[Request]:
    """Give requests for one session of each revision."""
    newest = sessions[VERSION]
    for meta in METAS:
        yield in_session(Request(encoded(message(meta=meta))), newest, VERSION)
        yield in_session(
            Request(encoded(message({"name": "logs", "arguments": {}}, meta))),
            newest,
            VERSION,
        )
    for version, session in sessions.items():
        odd = call("drill_add", a="x", b=2)
        for each in (SUM, odd, call("weather", place="Rome"), call("drill_whoami")):
            for header in (version, VERSION, "2026-07-28"):
                yield in_session(each, session, header)
            headers = changed(mcp_protocol_version=None)
            yield in_session(Request(each.body, headers), session, version)
    for session in ("", "x", newest[:-1], f"{newest} ", newest.upper()):
        yield in_session(SUM, session, VERSION)
    twice = in_session(in_session(SUM, newest, VERSION), newest, VERSION)
    yield twice
    routed = changed(mcp_session_id=newest, mcp_protocol_version=VERSION)
    yield Request(SUM.body.replace(encoded(META), b"{}"), routed)


async def opened(application: WireCheck, **options: Any) -> dict[str, str]:
    """Open a session of each revision; return their ids."""
    return {
        version: str((await Client(application, version, **options).open()).session)
        for version in STATEFUL
    }


async def test_the_corpus_is_answered_alike(both: Both, application: WireCheck) -> None:
    sessions = await opened(application)
    corpus = [in_session(each, sessions[VERSION], VERSION) for each in CORPUS]
    twice = [each for each in requests_of(sessions) for _ in range(2)]
    assert await both.differences([*corpus, *twice]) == []
    assert both.plain > 80


async def test_calls_of_real_clients_are_answered_alike(
    both: Both, application: WireCheck
) -> None:
    calls = recorded(sessions=await opened(application))
    assert await both.differences(calls) == []
    # Half of them, but for what comes late on a machine that is busy.
    assert both.plain > len(calls) / 3


@pytest.mark.parametrize(
    ("name", "text", "instead"),
    [
        # A revision that is not the session's; another session's client in the log.
        ("_expected_tool", "revision is not session.revision", "False"),
        ("_known_tool", "self.session.digest", "''"),
    ],
)
async def test_a_fault_is_found(
    both: Both, application: WireCheck, name: str, text: str, instead: str
) -> None:
    requests = list(requests_of(await opened(application)))
    with planted(SessionCall, name, text, instead):
        assert await both.differences(requests)
    application.violations.clear()


async def test_a_session_serves_its_principal_alone(
    both: Both, crowd: Crowd, application: WireCheck
) -> None:
    """Tokens of one person, and of another, use the session of the first."""
    token_cache.forget_all()

    def bearer(token: str) -> dict[str, str]:
        return {"authorization": f"Bearer {token}"}

    client = Client(application, VERSION, path=BY, headers=bearer(crowd.token))
    session = str((await client.open()).session)
    steps = [
        in_session(Request(SUM.body, changed(**bearer(token)), BY), session, VERSION)
        for token in (crowd.token, crowd.reading, crowd.outside, crowd.token)
        for _ in range(3)
    ]
    assert await both.differences(steps) == []
    assert both.plain >= 6


@pytest.mark.parametrize(
    "request_", [SUM, call("blocks"), call("logs"), call("fails", kind="tool error")]
)
async def test_a_call_leaves_no_cycle(
    both: Both, application: WireCheck, request_: Request
) -> None:
    client = await Client(application, VERSION).open()
    sent = in_session(request_, str(client.session), VERSION)
    made: list[weakref.ref[PlainCall]] = []
    run = SessionCall.serve

    async def serve(each: SessionCall) -> None:
        made.append(weakref.ref(each))
        await run(each)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SessionCall, "serve", serve)
        # However busy the machine is.
        patched.setattr(plain_call, "LATE_AFTER_S", 60.0)
        await both.seen(sent)
        await asyncio.sleep(0.05)
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                await both.seen(sent)
            await asyncio.sleep(0.05)
            left = [each() for each in made]
        finally:
            gc.enable()
    assert len(made) >= 3
    assert left == [None] * len(made)


@pytest.mark.usefixtures("each_way")
async def test_it_goes_on_if_its_client_leaves(
    application: WireCheck, process: Process, stage: Stage
) -> None:
    client = await Client(application, VERSION).open()
    visit = client.begin("tools/call", {"name": "waits", "arguments": {}})
    await stage.entered.wait()
    await visit.leave()
    assert len(process.running) == 1
    stage.released.set()
    await until(lambda: not len(process.running))
    assert stage.told == ["done"]
