"""events/subscribe and events/unsubscribe as clients meet them (SEP-3415)."""

from __future__ import annotations

from tests.events.conftest import EventClient
from tests.events.receivers import Receiver


async def test_a_receiver_agrees_once_and_is_subscribed(
    receiver: Receiver, ana: EventClient
) -> None:
    params = {"name": "order.paid", "delivery": receiver.delivery()}
    first = (await ana.client.request("events/subscribe", params)).result
    again = (await ana.client.request("events/subscribe", params)).result
    assert first["id"] == again["id"]
    assert len(receiver.challenges) == 1
