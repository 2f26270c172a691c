"""Records of `logging` that are forwarded to the client whose call made them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

import pytest

from mcp_app.server.call import ClientHandler, level_of
from tests.asgi_client import PREFIX, Client, JsonObject
from tests.serving import Connect

NEWEST: Final = "2026-07-28"


@pytest.fixture
def handler() -> Iterator[ClientHandler]:
    made = ClientHandler()
    made.setFormatter(logging.Formatter("> %(message)s"))
    loggers = [logging.getLogger(name) for name in ("shop", "mcp_app")]
    for logger in loggers:
        logger.addHandler(made)
    shop = loggers[0]
    before = shop.level
    # Loggers below it remember what they are to hear, until one is set.
    shop.setLevel(logging.DEBUG)
    yield made
    shop.setLevel(before)
    for logger in loggers:
        logger.removeHandler(made)


async def recorded(client: Client) -> list[JsonObject]:
    meta = {f"{PREFIX}logLevel": "debug"}
    params = {"name": "records", "arguments": {}, "_meta": meta}
    found = await client.request("tools/call", params)
    assert found.text == "recorded"
    return found.notifications("notifications/message")


@pytest.mark.parametrize("version", ["2025-11-25", NEWEST])
async def test_records_become_messages(
    connect: Connect, handler: ClientHandler, version: str
) -> None:
    client = await connect(version)
    if client.revision.sessions:
        await client.request("logging/setLevel", {"level": "debug"})
    messages = await recorded(client)
    assert [each["level"] for each in messages] == [
        "debug",
        "info",
        "warning",
        "error",
        "critical",
    ]
    # Our own records are for the operator.
    assert {each["logger"] for each in messages} == {"shop.orders"}
    assert messages[0]["data"] == "> record 10"


def test_records_outside_a_call_are_dropped(handler: ClientHandler) -> None:
    logging.getLogger("shop").error("Nobody called.")


@pytest.mark.parametrize(
    ("number", "level"),
    [
        (0, "debug"),
        (logging.DEBUG, "debug"),
        (19, "debug"),
        (logging.INFO, "info"),
        (25, "info"),
        (logging.WARNING, "warning"),
        (logging.ERROR, "error"),
        (logging.CRITICAL, "critical"),
        (99, "critical"),
    ],
)
def test_levels(number: int, level: str) -> None:
    assert level_of(number) == level


@pytest.mark.parametrize("version", ["2025-11-25", NEWEST])
async def test_a_record_that_cannot_be_formatted(
    connect: Connect,
    handler: ClientHandler,
    version: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is reported where `logging` reports such things, and the call goes on."""
    reported: list[logging.LogRecord] = []
    monkeypatch.setattr(handler, "handleError", reported.append)
    handler.setFormatter(logging.Formatter("%(missing)s"))
    client = await connect(version)
    assert await recorded(client) == []
    assert reported
