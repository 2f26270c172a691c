"""What a probe is told, and that without a ticket there is none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import pytest
from django.core import signing
from pytest_django import Settings

from mcp_app.models import Server
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.transports.http import probe
from mcp_app.transports.http.probe import (
    CHANGED,
    HEADER,
    LOST,
    MAX_PROBES,
    MAX_TICKET_LENGTH,
    PING,
    PROBE_HEADERS,
    UNCHANGED,
    Probe,
    issue_ticket,
    read_ticket,
)
from tests.asgi_client import Visit
from tests.published import stopped
from tests.transports.http.differing import HEADERS, encoded, message
from tests.wire.middleware import WireCheck

SERVER: Final = "tagged"
PATH: Final = f"/mcp/{SERVER}"
MANY: Final = 1_000


def visited(
    application: WireCheck,
    kind: Probe,
    *,
    body: bytes = PING,
    path: str = PATH,
    without: str = "",
    more: Mapping[str, str] = MappingProxyType({}),
) -> Visit:
    headers = {
        "host": "localhost",
        "content-type": "application/json",
        **PROBE_HEADERS,
        HEADER: issue_ticket(SERVER, kind),
        **more,
    }
    headers.pop(without, None)
    pairs = [(name.lower(), value) for name, value in headers.items()]
    return Visit(application, "POST", path, pairs, [body])


async def events(visit: Visit) -> list[dict[str, Any]]:
    return [json.loads(each[6:]) for each in (await _text(visit)).split("\n\n") if each]


async def _text(visit: Visit) -> str:
    return (await visit.body()).decode()


async def test_a_stream_says_what_arrived_and_ticks(application: WireCheck) -> None:
    visit = visited(application, Probe.TICKS, more={"X-Forwarded-For": "192.0.2.7"})
    first, *ticks, last = await events(visit)
    assert visit.status == 200
    assert visit.headers["content-type"] == "text/event-stream"
    assert visit.headers["cache-control"] == "no-store, no-transform"
    assert ticks == [{"tick": number} for number in range(1, 6)]
    assert last == {"end": True}
    assert first["host"] == "localhost"
    assert first["scheme"] == "http"
    assert first["peer"] == "127.0.0.1"
    assert first["forwarded"] == {"x-forwarded-for": "192.0.2.7"}
    assert first["headers"] == dict.fromkeys(PROBE_HEADERS, UNCHANGED)
    assert first["body"] == len(PING)
    assert abs(first["clock_ms"] - first["database_ms"]) < 60_000


async def test_what_became_of_headers(application: WireCheck) -> None:
    changed = {"Mcp-Name": "other", "host": "upstream", "origin": "https://x.example"}
    visit = visited(application, Probe.BODY, without="Authorization", more=changed)
    report = json.loads(await visit.body())
    told = report["headers"]
    assert report["host"] == "upstream"
    assert told["Authorization"] == LOST
    assert told["Mcp-Name"] == CHANGED
    # What a credential is, is not repeated.
    assert "Bearer" not in (await _text(visited(application, Probe.BODY)))


async def test_a_refusal_has_its_challenge(application: WireCheck) -> None:
    visit = visited(application, Probe.REFUSAL)
    assert json.loads(await visit.body())["probe"] == "refusal"
    assert visit.status == 401
    assert visit.headers["www-authenticate"].startswith("Bearer ")


@pytest.mark.parametrize("mcp", [{"LIMITS": {"rates": False, "body": 1_000}}])
async def test_the_size_of_a_body(application: WireCheck) -> None:
    for size in (0, 1_000, 1_001, 50_000):
        visit = visited(application, Probe.BODY, body=b"x" * size)
        assert json.loads(await visit.body())["body"] == min(size, 1_001)


async def test_a_body_that_does_not_come(
    application: WireCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "BODY_S", 0.01)
    given = [("host", "x"), (HEADER.lower(), issue_ticket(SERVER, Probe.BODY))]
    visit = Visit(application, "POST", PATH, given, [b"{"], complete=False)
    assert json.loads(await visit.body()) == {"mcp_probe": 1, "late": True}
    assert visit.status == 408
    monkeypatch.setattr(probe, "BODY_S", 60.0)
    gone = Visit(application, "POST", PATH, given, [b"{"], complete=False)
    await gone.leave()
    assert not gone.status
    assert not probe._open.total()


async def test_it_waits_as_long_as_it_says(
    application: WireCheck, monkeypatch: pytest.MonkeyPatch, process: Process
) -> None:
    waited: list[float] = []

    async def left(self: object, seconds: float, current: Process) -> bool:
        waited.append(seconds)
        return False

    monkeypatch.setattr(probe.ProbeAnswer, "_wait_for_end", left)
    for kind in (Probe.SILENCE, Probe.HOLD, Probe.TICKS):
        await visited(application, kind).body()
    assert waited == [process.limits.heartbeat + 5, 3.0, *[0.25] * 5]


async def test_who_leaves_ends_it(application: WireCheck) -> None:
    visit = await visited(application, Probe.SILENCE).opened()
    await visit.leave()
    assert not probe._open.total()


async def test_a_process_that_stops_does_not_wait(
    application: WireCheck, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "LOOK_S", 0.01)
    visit = await visited(application, Probe.SILENCE).opened()
    process.stopping = True
    assert (await events(visit))[-1] == {"end": True}


async def test_it_answers_while_its_server_is_stopped(application: WireCheck) -> None:
    await writer.run(lambda: stopped(Server.objects.get(slug=SERVER)))
    visit = visited(application, Probe.BODY)
    assert json.loads(await visit.body())["server"] == SERVER


async def test_four_at_once_and_one_silence(application: WireCheck) -> None:
    silence = await visited(application, Probe.SILENCE).opened()
    again = visited(application, Probe.SILENCE)
    await again.body()
    assert again.status == 429
    held = [visited(application, Probe.HOLD) for _ in range(MAX_PROBES - 1)]
    for each in held:
        await each.opened()
    more = [visited(application, Probe.BODY) for _ in range(MANY)]
    await asyncio.gather(*(each.body() for each in more))
    assert {each.status for each in more} == {429}
    for each in (silence, *held):
        await each.leave()
    assert not probe._open.total()
    last = visited(application, Probe.BODY)
    await last.body()
    assert last.status == 200


@pytest.mark.parametrize("host", ["localhost", "upstream"])
async def test_without_a_ticket_the_header_means_nothing(
    application: WireCheck, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """Byte for byte, for a plain call, and for what goes the long way."""
    good = issue_ticket("default", Probe.BODY)
    wrong = ["", "x", good[:-1], good + "A", issue_ticket("pages", Probe.BODY)]
    monkeypatch.setattr(probe, "AGE_S", -1)
    wrong.append(good)
    for body in (encoded(message()), PING, b"no JSON"):
        headers = {**dict(HEADERS), "host": host}
        expected = await _answer(application, headers, body)
        for ticket in wrong:
            given = {**headers, HEADER.lower(): ticket}
            assert await _answer(application, given, body) == expected


async def _answer(
    application: WireCheck, headers: dict[str, str], body: bytes
) -> tuple[int, dict[str, str], bytes]:
    visit = Visit(application, "POST", "/mcp", [*headers.items()], [body])
    await visit.body()
    return visit.status, visit.headers, visit.raw


async def test_only_a_post_to_the_endpoint_itself(application: WireCheck) -> None:
    """The addresses of HTTP+SSE, and other methods, know of none."""
    ticket = issue_ticket(SERVER, Probe.BODY)
    for method, path in (("GET", PATH), ("DELETE", PATH), ("POST", f"{PATH}/messages")):
        given = [("host", "localhost"), (HEADER.lower(), ticket)]
        visit = Visit(application, method, path, given, [b""])
        await visit.body()
        assert "mcp-probe" not in visit.headers
        assert visit.status >= 400


def test_it_says_what_it_is_for() -> None:
    for each in Probe:
        ticket = issue_ticket("team", each)
        assert len(ticket) < MAX_TICKET_LENGTH
        assert read_ticket(ticket, "team") is each
        assert read_ticket(ticket, "other") is None


def test_an_old_one_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    ticket = issue_ticket("team", Probe.BODY)
    monkeypatch.setattr(probe, "AGE_S", -1)
    assert read_ticket(ticket, "team") is None


def test_each_bit_counts() -> None:
    ticket = issue_ticket("team", Probe.BODY).encode()
    for place in range(len(ticket)):
        for bit in range(8):
            altered = bytearray(ticket)
            altered[place] ^= 1 << bit
            assert read_ticket(altered.decode("latin-1"), "team") is None


def test_what_is_none() -> None:
    for text in ("", ":", "a:b:c", "\xff" * 40, "x" * 10_000):
        assert read_ticket(text, "team") is None
    # The site signs other things with the same key.
    assert read_ticket(signing.dumps(["team", "body"]), "team") is None


def test_keys_can_be_rotated(settings: Settings) -> None:
    settings.MCP = {"STATE_KEYS": ["an old key of this site 0123456789"]}
    ticket = issue_ticket("team", Probe.BODY)
    settings.MCP = {"STATE_KEYS": ["a new key of this site 01234567890"]}
    assert read_ticket(ticket, "team") is None
    both = ["a new key of this site 01234567890", "an old key of this site 0123456789"]
    settings.MCP = {"STATE_KEYS": both}
    assert read_ticket(ticket, "team") is not None
