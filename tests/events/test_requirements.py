"""What SEP-3415 demands of a server, as far as no other test of events shows it."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest
from django.db import OperationalError
from pytest_django import Settings

from mcp_app.egress.callbacks import Callbacks
from mcp_app.models import EventSubscription
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from tests.events.conftest import EventClient, OrderPaid, emit, stopped_type
from tests.events.receivers import Receiver
from tests.events.test_delivery import deliver
from tests.events.test_stream import pushing
from tests.events.test_subscribe import ask
from tests.serving import RATES
from tests.statements import wrapped

pytestmark = pytest.mark.usefixtures("shop_events")


async def test_a_heartbeat_comes_whatever_is_away(
    ana: EventClient, process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_statement: Any) -> NoReturn:
        raise OperationalError("The connection is gone.")

    async with pushing(ana) as stream:
        active = await stream.next("active")
        (listener,) = process.listeners
        async with wrapped(fail, [writer]):
            process.events.note_changes()
            listener.beat()
            beat = await stream.next("heartbeat")
            assert "A background task failed" not in caplog.text
            assert beat == {"cursor": active["cursor"]}
        with stopped_type(process):
            listener.beat()
            assert "switched off" in (await stream.next("error"))["error"]["message"]
            assert await stream.next("heartbeat") == beat
            listener.beat()
            assert await stream.next("heartbeat") == beat
        # It goes on with what happened meanwhile.
        await emit(OrderPaid("1"))
        assert (await stream.next("event"))["data"]["number"] == "1"


@pytest.mark.parametrize("mcp", [{"LIMITS": {**RATES, "running_calls": 1}}])
async def test_a_stream_is_no_running_call_and_leaves_nothing(
    ana: EventClient, process: Process
) -> None:
    async with pushing(ana) as first, pushing(ana) as second:
        for stream in (first, second):
            await stream.next("active")
        assert (await ana.poll())["events"] == []
        await emit(OrderPaid("1"))
        for stream in (first, second):
            assert (await stream.next("event"))["data"]["number"] == "1"
        assert process.event_streams._by_topic
    assert [*process.listeners] == []
    assert process.event_streams._by_topic == {}


@pytest.mark.parametrize("mcp", [{"LIMITS": {**RATES, "event_size": 2**20}}])
async def test_no_body_is_larger_than_256_kib(
    ana: EventClient, receiver: Receiver, process: Process
) -> None:
    assert (await ask(receiver, ana)).result
    for size in (2**18, 2**17):
        await emit(OrderPaid("x" * size))
    await deliver(process)
    (post,) = receiver.events
    assert len(post.json["data"]["number"]) == 2**17
    row = await EventSubscription.objects.aget()
    # As after 413, it is not tried again.
    assert (row.retries, row.given_up) == ("[]", f"[{row.position - 1}]")


async def test_where_a_name_leads_is_looked_at_when_an_event_is_posted(
    ana: EventClient, receiver: Receiver, process: Process, settings: Settings
) -> None:
    assert (await ask(receiver, ana)).result
    (agreed,) = receiver.peer.received
    assert agreed.header("host") == [f"localhost:{receiver.peer.port}"]
    closed = receiver.settings(networks=["10.0.0.0/8"])
    settings.MCP = {**settings.MCP, "EVENTS": closed}
    process.webhooks.callbacks = Callbacks()
    await emit(OrderPaid("1"))
    await deliver(process)
    row = await EventSubscription.objects.aget()
    assert (row.last_error, receiver.events) == ("connection_refused", [])
