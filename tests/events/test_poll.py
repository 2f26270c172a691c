"""events/list and events/poll as clients of both eras meet them (SEP-3415)."""

from __future__ import annotations

from tests.events.conftest import EventClient, OrderPaid, emit


async def test_a_client_is_told_what_happened_since_its_cursor(
    ana: EventClient,
) -> None:
    await emit(OrderPaid("1"))
    first = await ana.poll()
    assert first["events"] == []
    assert not first["truncated"]
    assert not first["hasMore"]
    identifier = await emit(OrderPaid("2", total=3.5))
    second = await ana.told(cursor=first["cursor"])
    (event,) = second["events"]
    assert event["eventId"] == identifier
    assert event["data"] == {"number": "2", "shop": "ulm", "total": 3.5}
    assert (await ana.poll(cursor=second["cursor"]))["events"] == []
    # The same cursor tells the same again.
    assert (await ana.poll(cursor=first["cursor"]))["events"] == [event]
