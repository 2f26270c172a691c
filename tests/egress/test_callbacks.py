"""Posts to receivers, beyond what subscribing shows (tests/events)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from mcp_app.egress import callbacks
from mcp_app.egress.callbacks import (
    CallbackAnswer,
    Callbacks,
    UnusableCallback,
    read_callback,
)
from mcp_app.egress.client import close_connections, connections
from tests.egress.peer import answer, peer_on, settled
from tests.events.receivers import receiver_in


async def test_the_receivers_used_last_keep_their_connections(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callbacks, "MAX_SITES", 1)
    own = Callbacks()
    async with receiver_in(tmp_path) as receiver:
        settings.MCP = {**settings.MCP, "EVENTS": receiver.settings()}
        # It has answered: what it says besides is of no interest.
        receiver.reply = answer("x" * 9_000)
        places = [
            receiver.url,
            receiver.url,
            receiver.url.replace("localhost", "[::1]"),
        ]
        results = [await own.post_message(read_callback(u), [], b"{}") for u in places]
        assert results[:2] == [CallbackAnswer(error="", status=200)] * 2
        assert results[2] == CallbackAnswer(error="connection_refused")
        assert [each.host for each in connections()._pools] == ["::1"]
    await close_connections()


async def test_a_receiver_on_this_machine_needs_no_certificate_under_debug(
    settings: Settings,
) -> None:
    async with peer_on() as peer:
        peer.send = answer()
        url = f"http://127.0.0.1:{peer.port}/hooks"
        with pytest.raises(UnusableCallback, match="While DEBUG is on, it may also be"):
            read_callback(url)
        settings.DEBUG = True
        callback = read_callback(url)
        assert not callback.trusted
        sent = await Callbacks().post_message(callback, [], b"{}")
        assert sent == CallbackAnswer(error="", status=200)
        assert peer.received[0].target == "/hooks"
        for elsewhere in ("http://10.0.0.1:80/a", "http://hooks.example.com/a"):
            with pytest.raises(UnusableCallback):
                read_callback(elsewhere)
        await close_connections()
    await settled()
