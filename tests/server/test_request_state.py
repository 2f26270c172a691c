"""Sealed state: what is ours comes back whole, all else is one refusal."""

from __future__ import annotations

import base64
import random
from typing import Any, Final

import pytest

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import InvalidParams
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server import conversation, round_trip
from mcp_app.server.conversation import (
    REFUSED,
    AnsweredQuestions,
    RequestState,
    StateSealer,
    binding,
)
from tests.asgi_client import Client
from tests.serving import Connect

NEWEST: Final = "2026-07-28"
NOW: Final = 1_000_000
AGE_S: Final = 600
SECRET: Final = "a secret of this test"
BOUND: Final = binding("user", "default", "tools/call", "buy", {"a": 1})
STATE: Final = RequestState(
    round_trip="trip",
    asked={"open": "digest", "odd key \0 💥": "d"},
    answered={
        "done": AnsweredQuestions(
            "digest", {"action": "accept", "content": {"a": None}}
        )
    },
)
ACCEPTED: Final[JsonObject] = {"action": "accept", "content": {"item": "tea"}}


def sealer(*secrets: str, size: int = 16 * 1024) -> StateSealer:
    return StateSealer(secrets or (SECRET,), age=AGE_S, size=size)


def refused(text: object, *secrets: str, bound: bytes = BOUND, now: int = NOW) -> None:
    with pytest.raises(InvalidParams) as caught:
        sealer(*secrets).open(text, bound, now)
    assert (caught.value.message, caught.value.data) == (REFUSED, None)


@pytest.mark.parametrize("state", [STATE, RequestState(round_trip="")])
def test_it_comes_back_whole(state: RequestState) -> None:
    text = sealer().seal(state, BOUND, NOW)
    assert sealer().open(text, BOUND, NOW) == state
    assert text.isascii()
    assert "=" not in text


def test_no_two_are_the_same() -> None:
    assert len({sealer().seal(STATE, BOUND, NOW) for _ in range(50)}) == 50


def test_what_is_inside_cannot_be_read() -> None:
    text = sealer().seal(STATE, BOUND, NOW)
    sealed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    assert b"digest" not in sealed
    assert b"trip" not in sealed


@pytest.mark.parametrize(
    ("later_ms", "alive"),
    [(0, True), (AGE_S * 1000 - 1, True), (AGE_S * 1000, False), (AGE_S * 2000, False)],
)
def test_it_expires(later_ms: int, alive: bool) -> None:
    text = sealer().seal(STATE, BOUND, NOW)
    if alive:
        assert sealer().open(text, BOUND, NOW + later_ms) == STATE
    else:
        refused(text, now=NOW + later_ms)


def test_each_bit_counts() -> None:
    text = sealer().seal(STATE, BOUND, NOW)
    sealed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    rng = random.Random(11)  # noqa: S311 - no secret
    for bit in rng.sample(range(len(sealed) * 8), 200):
        flipped = bytearray(sealed)
        flipped[bit // 8] ^= 1 << bit % 8
        refused(base64.urlsafe_b64encode(flipped).rstrip(b"=").decode())


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text + "=" * (-len(text) % 4 or 4),
        lambda text: text + "=",
        lambda text: text + "-TAMPERED",
        lambda text: text + "A",
        lambda text: text + "\n",
        lambda text: " " + text,
        lambda text: text[:10] + "." + text[10:],
        lambda text: text[:-1],
        lambda text: text[1:],
        lambda text: text[:16],
        lambda text: text.swapcase(),
        lambda text: text + text,
        lambda text: text + "é",
        lambda text: text.encode(),
        lambda text: [text],
    ],
)
def test_only_the_text_that_we_write_is_ours(change: Any) -> None:
    refused(change(sealer().seal(STATE, BOUND, NOW)))


@pytest.mark.parametrize("text", [None, 7, True, "", "A", "AAAA", "A" * 20_000, {}, []])
def test_what_was_never_sealed(text: object) -> None:
    refused(text)


def test_spare_bits_must_be_zero() -> None:
    """Several texts decode to the same bytes."""
    for size in range(3):
        state = RequestState(round_trip="x" * size)
        text = sealer().seal(state, BOUND, NOW)
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        for last in alphabet.replace(text[-1], ""):
            refused(text[:-1] + last)


ELSEWHERE: Final = [
    binding("other", "default", "tools/call", "buy", {"a": 1}),
    binding("user", "other", "tools/call", "buy", {"a": 1}),
    binding("user", "default", "prompts/get", "buy", {"a": 1}),
    binding("user", "default", "tools/call", "sell", {"a": 1}),
    binding("user", "default", "tools/call", "buy", {"a": 2}),
    binding("user", "default", "tools/call", "buy", {"a": "1"}),
    binding("user", "default", "tools/call", "buy", {}),
    binding("user", "default", "tools/call", "buy", None),
    # The parts are kept apart.
    binding("userd", "efault", "tools/call", "buy", {"a": 1}),
]


@pytest.mark.parametrize("bound", ELSEWHERE)
def test_it_is_bound(bound: bytes) -> None:
    refused(sealer().seal(STATE, BOUND, NOW), bound=bound)


def test_the_order_of_members_binds_nothing() -> None:
    there, back = {"a": 1, "b": [2]}, {"b": [2], "a": 1}
    assert binding("u", "s", "m", "t", there) == binding("u", "s", "m", "t", back)


def test_keys_are_rotated() -> None:
    text = sealer("old").seal(STATE, BOUND, NOW)
    assert sealer("new", "old").open(text, BOUND, NOW) == STATE
    assert sealer("old", "new").open(text, BOUND, NOW) == STATE
    refused(text, "new")
    refused(sealer("new", "old").seal(STATE, BOUND, NOW), "old")


def test_what_is_too_large_is_not_sealed() -> None:
    with pytest.raises(ValueError, match="300 are allowed"):
        sealer(size=300).seal(
            RequestState(round_trip="", asked={"k": "x" * 300}), BOUND, NOW
        )


@pytest.mark.parametrize("format_number", [0, 2])
def test_another_format_is_refused(
    monkeypatch: pytest.MonkeyPatch, format_number: int
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(conversation, "FORMAT", format_number)
        text = sealer().seal(STATE, BOUND, NOW)
    refused(text)


def test_what_is_sealed_is_an_object(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(jsonrpc, "write", lambda value: b"[]")
        text = sealer().seal(STATE, b"", NOW)
    refused(text, bound=b"")


# -- through the endpoint -------------------------------------------------------


async def asked(client: Client, arguments: JsonObject) -> str:
    params = {"name": "orders", "arguments": arguments}
    found = await client.request("tools/call", params)
    state: str = found.result["requestState"]
    return state


async def answered(client: Client, arguments: JsonObject, state: str) -> JsonObject:
    brought = {"requestState": state, "inputResponses": {"k": ACCEPTED}}
    params = {"name": "orders", "arguments": arguments, **brought}
    return (await client.request("tools/call", params, id=7)).answer


async def test_flipped_bits_on_the_wire(connect: Connect) -> None:
    client = await connect(NEWEST)
    arguments = {"key": "k"}
    state = await asked(client, arguments)
    sealed = base64.urlsafe_b64decode(state + "=" * (-len(state) % 4))
    rng = random.Random(5)  # noqa: S311 - no secret
    answers = []
    for bit in rng.sample(range(len(sealed) * 8), 40):
        flipped = bytearray(sealed)
        flipped[bit // 8] ^= 1 << bit % 8
        text = base64.urlsafe_b64encode(flipped).rstrip(b"=").decode()
        answers.append(await answered(client, arguments, text))
    answers.append(await answered(client, arguments, f"{state}-TAMPERED"))
    error = {"code": -32602, "message": REFUSED}
    assert all(each["error"] == error for each in answers)
    found = await answered(client, arguments, state)
    assert found["result"]["content"][0]["text"] == "1 tea"


async def test_time_on_the_wire(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await connect(NEWEST)
    state = await asked(client, {"key": "k"})
    now = round_trip.now_ms()
    monkeypatch.setattr(round_trip, "now_ms", lambda: now + 599_000)
    assert "result" in await answered(client, {"key": "k"}, state)
    monkeypatch.setattr(round_trip, "now_ms", lambda: now + 601_000)
    found = await answered(client, {"key": "k"}, state)
    assert found["error"]["code"] == -32602
