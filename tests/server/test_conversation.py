"""The rules by themselves; what each transport makes of them is in tests/transports."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from mcp_app.conf import Limits
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.interface.errors import TooManyQuestions
from mcp_app.interface.questions import SamplingMessage
from mcp_app.pools.turns import Owner
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.content import Audio, Image, Text, ToolResult, ToolUse
from mcp_app.protocol.errors import InvalidParams, InvalidRequest
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.revisions import REVISIONS, STATEFUL
from mcp_app.server import conversation, round_trip
from mcp_app.server.conversation import (
    MAX_TOOL_ROUNDS,
    REFUSED,
    MixedEras,
    Place,
    QuestionPlaces,
    RequestState,
    StateSealer,
    check_tools,
    read_batch,
    state_binding,
)
from tests.asgi_client import Client
from tests.behaviours import CONVERSATION

BATCHED: Final = STATEFUL["2025-03-26"]
PING: Final[dict[str, Any]] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
NOTE: Final[dict[str, Any]] = {"jsonrpc": "2.0", "method": "notifications/any"}


@pytest.mark.parametrize("method", ["initialize", "ping"])
def test_what_needs_no_session(method: str) -> None:
    conversation.check_turn(method, None)


@pytest.mark.parametrize("method", ["tools/list", "nothing", ""])
def test_what_needs_one(method: str) -> None:
    conversation.check_turn(method, BATCHED)
    with pytest.raises(InvalidRequest, match="initialize first"):
        conversation.check_turn(method, None)


def test_initialize_comes_once() -> None:
    with pytest.raises(InvalidRequest, match="initialized already"):
        conversation.check_turn("initialize", BATCHED)


def test_an_id_that_runs() -> None:
    conversation.check_request_id(1, {"1"})
    with pytest.raises(InvalidRequest, match="id '1' is running"):
        conversation.check_request_id("1", {"1"})


def test_the_messages_of_a_batch() -> None:
    reply = {"jsonrpc": "2.0", "id": 1, "result": {}}
    batch = read_batch([NOTE, PING], BATCHED, {2}, limit=2, lenient=False)
    assert [each.id for each in batch.requests] == [1]
    assert len(batch.others) == 1
    assert not read_batch([reply], BATCHED, {1}, limit=2, lenient=False).requests


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "at least one"),
        ([PING, NOTE, NOTE], "3 messages; at most 2 are allowed"),
        ([NOTE, [PING]], "Message 2 of the batch"),
        ([PING, PING], "the same id"),
        ([PING, {**PING, "id": 2, "method": "initialize"}], "single message"),
        ([NOTE, {**PING, "id": 7}], "id 7 is running"),
    ],
)
def test_batches_that_are_refused(value: list[object], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        read_batch(value, BATCHED, {7}, limit=2, lenient=False)


@pytest.mark.parametrize("message", [PING, NOTE])
def test_a_batch_of_both_eras(message: dict[str, Any]) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    newer = {**message, "params": {"_meta": meta}}
    with pytest.raises(MixedEras):
        read_batch([NOTE, newer], BATCHED, (), limit=2, lenient=False)


@pytest.mark.parametrize("version", STATEFUL)
def test_one_revision_has_batches(version: str) -> None:
    if version == "2025-03-26":
        conversation.check_batches(STATEFUL[version])
        return
    for revision in (STATEFUL[version], None):
        with pytest.raises(InvalidRequest, match="single message"):
            read_batch([PING], revision, (), limit=2, lenient=False)


# -- question places -------------------------------------------------------------------


class Scene:
    """A process with places, and the calls that hold some of them."""

    def __init__(self, threads: int = 8, **limits: object) -> None:
        self.places = QuestionPlaces(Limits(**limits), threads)  # type: ignore[arg-type]
        self.gave_up: list[str] = []
        self._open: dict[str, ExitStack] = {}

    def ask(
        self,
        person: str,
        name: str = "",
        *,
        questions: int = 1,
        in_thread: bool = True,
        stranger: bool = False,
    ) -> None:
        """Let a call wait; it goes on waiting when it was told to give up."""
        name = name or person
        assert name not in self._open
        place = Place(
            owner=Owner(person, stranger),
            questions=questions,
            in_thread=in_thread,
            give_up=lambda: self.gave_up.append(name),
        )
        with ExitStack() as stack:
            stack.enter_context(self.places.hold_place(place))
            self._open[name] = stack.pop_all()

    def end(self, *names: str) -> None:
        for name in names:
            self._open.pop(name).close()

    def end_all(self) -> None:
        self.end(*self._open)
        assert not self.places._open
        assert not self.places._in_threads


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.end_all()


def test_one_person_has_so_many_questions_open(scene: Scene) -> None:
    for number in range(6):
        scene.ask("maria", f"{number}", in_thread=False)
    scene.ask("maria", "two", questions=2, in_thread=False)
    with pytest.raises(TooManyQuestions) as refused:
        scene.ask("maria", "more", in_thread=False)
    assert "8 wait for an answer, 1 more cannot be asked" in str(refused.value)
    scene.ask("jan", in_thread=False)
    scene.end("two")
    with pytest.raises(TooManyQuestions, match=r"6 wait .* 3 more"):
        scene.ask("maria", "three", questions=3, in_thread=False)
    scene.ask("maria", "more", in_thread=False)
    assert scene.gave_up == []


def test_nobody_in_particular_has_as_many_as_there_are(scene: Scene) -> None:
    for number in range(20):
        scene.ask("", f"{number}", in_thread=False, stranger=True)


def test_half_of_the_threads_may_wait(scene: Scene) -> None:
    people = ["a", "b", "c", "d"]
    for person in people:
        scene.ask(person)
    with pytest.raises(TooManyQuestions, match="waits for as many people as it can"):
        scene.ask("e")
    scene.ask("e", in_thread=False)
    scene.end("e", "c")
    scene.ask("e")
    assert scene.gave_up == []


def test_who_has_most_gives_the_oldest_up(scene: Scene) -> None:
    for number in range(3):
        scene.ask("maria", f"maria {number}")
    scene.ask("jan", "jan 0")
    with pytest.raises(TooManyQuestions):
        scene.ask("maria", "maria 3")
    scene.ask("eva")
    assert scene.gave_up == ["maria 0"]
    # All have about as many: nobody takes from anybody.
    for person in ("maria", "jan", "eva"):
        with pytest.raises(TooManyQuestions):
            scene.ask(person, "more")
    scene.ask("tom")
    assert scene.gave_up == ["maria 0", "maria 1"]
    with pytest.raises(TooManyQuestions):
        scene.ask("ida")


def test_strangers_give_way_to_who_has_signed_in(scene: Scene) -> None:
    for number in range(4):
        scene.ask("", f"stranger {number}", stranger=True)
    with pytest.raises(TooManyQuestions):
        scene.ask("", "stranger 4", stranger=True)
    for person in ("maria", "jan", "eva", "tom"):
        scene.ask(person)
    assert scene.gave_up == [f"stranger {number}" for number in range(4)]
    with pytest.raises(TooManyQuestions):
        scene.ask("", "stranger 4", stranger=True)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_one_thread_may_always_wait(threads: int) -> None:
    scene = Scene(threads)
    scene.ask("", "stranger", stranger=True)
    scene.ask("maria")
    with pytest.raises(TooManyQuestions):
        scene.ask("jan")
    assert scene.gave_up == ["stranger"]
    scene.end_all()


def test_limits_can_be_switched_off() -> None:
    scene = Scene(2, rates=False)
    for number in range(20):
        scene.ask("maria", f"{number}")
    assert scene.gave_up == []
    scene.end_all()


# -- request state ---------------------------------------------------------------------


NOW: Final = 1_000_000
AGE_S: Final = 600
SECRET: Final = "a secret of this test"
BOUND: Final = state_binding("user", "default", "tools/call", "buy", {"a": 1})
STATE: Final = RequestState(
    round_trip="trip",
    open_digests={"open": "digest", "odd key \0 💥": "d"},
    answered={"done": ("digest", {"action": "accept", "content": {"a": None}})},
)
ACCEPTED: Final[JsonObject] = {"action": "accept", "content": {"item": "tea"}}


def sealer(*secrets: str, size: int = 16 * 1024) -> StateSealer:
    return StateSealer(secrets or (SECRET,), age=AGE_S, size=size)


def refused(text: object, *secrets: str, bound: bytes = BOUND, now: int = NOW) -> None:
    with pytest.raises(InvalidParams) as caught:
        sealer(*secrets).open_state(text, bound, now)
    assert (caught.value.message, caught.value.data) == (REFUSED, None)


@pytest.mark.parametrize("state", [STATE, RequestState(round_trip="")])
def test_it_comes_back_whole(state: RequestState) -> None:
    text = sealer().seal_state(state, BOUND, NOW)
    assert sealer().open_state(text, BOUND, NOW) == state
    assert text.isascii()
    assert "=" not in text


def test_no_two_are_the_same() -> None:
    assert len({sealer().seal_state(STATE, BOUND, NOW) for _ in range(50)}) == 50


def test_what_is_inside_cannot_be_read() -> None:
    text = sealer().seal_state(STATE, BOUND, NOW)
    sealed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    assert b"digest" not in sealed
    assert b"trip" not in sealed


@pytest.mark.parametrize(
    ("later_ms", "alive"),
    [(0, True), (AGE_S * 1000 - 1, True), (AGE_S * 1000, False), (AGE_S * 2000, False)],
)
def test_it_expires(later_ms: int, alive: bool) -> None:
    text = sealer().seal_state(STATE, BOUND, NOW)
    if alive:
        assert sealer().open_state(text, BOUND, NOW + later_ms) == STATE
    else:
        refused(text, now=NOW + later_ms)


def test_each_bit_counts() -> None:
    text = sealer().seal_state(STATE, BOUND, NOW)
    sealed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    rng = random.Random(11)  # noqa: S311 - no secret
    for bit in rng.sample(range(len(sealed) * 8), 200):
        flipped = bytearray(sealed)
        flipped[bit // 8] ^= 1 << bit % 8
        refused(base64.urlsafe_b64encode(flipped).rstrip(b"=").decode())


def test_only_the_text_that_we_write_is_ours() -> None:
    text = sealer().seal_state(STATE, BOUND, NOW)
    more = ("=" * (-len(text) % 4 or 4), "=", "-TAMPERED", "A", "\n", "é", text)
    others: list[object] = [
        *(text + each for each in more),
        *(" " + text, text[:10] + "." + text[10:], text[:-1], text[1:], text[:16]),
        *(text.swapcase(), text.encode(), [text]),
    ]
    for other in others:
        refused(other)


@pytest.mark.parametrize("text", [None, 7, True, "", "A", "AAAA", "A" * 20_000, {}, []])
def test_what_was_never_sealed(text: object) -> None:
    refused(text)


def test_spare_bits_must_be_zero() -> None:
    """Several texts decode to the same bytes."""
    for size in range(3):
        state = RequestState(round_trip="x" * size)
        text = sealer().seal_state(state, BOUND, NOW)
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        for last in alphabet.replace(text[-1], ""):
            refused(text[:-1] + last)


ELSEWHERE: Final = [
    state_binding("other", "default", "tools/call", "buy", {"a": 1}),
    state_binding("user", "other", "tools/call", "buy", {"a": 1}),
    state_binding("user", "default", "prompts/get", "buy", {"a": 1}),
    state_binding("user", "default", "tools/call", "sell", {"a": 1}),
    *(
        state_binding("user", "default", "tools/call", "buy", arguments)
        for arguments in ({"a": 2}, {"a": "1"}, {}, None)
    ),
    # The parts are kept apart.
    state_binding("userd", "efault", "tools/call", "buy", {"a": 1}),
]


@pytest.mark.parametrize("bound", ELSEWHERE)
def test_it_is_bound(bound: bytes) -> None:
    refused(sealer().seal_state(STATE, BOUND, NOW), bound=bound)


def test_the_order_of_members_binds_nothing() -> None:
    there, back = {"a": 1, "b": [2]}, {"b": [2], "a": 1}
    place = ("u", "s", "m", "t")
    assert state_binding(*place, there) == state_binding(*place, back)


def test_keys_are_rotated() -> None:
    text = sealer("old").seal_state(STATE, BOUND, NOW)
    assert sealer("new", "old").open_state(text, BOUND, NOW) == STATE
    assert sealer("old", "new").open_state(text, BOUND, NOW) == STATE
    refused(text, "new")
    refused(sealer("new", "old").seal_state(STATE, BOUND, NOW), "old")


def test_what_is_too_large_is_not_sealed() -> None:
    state = RequestState(round_trip="", open_digests={"k": "x" * 300})
    with pytest.raises(ValueError, match="300 are allowed"):
        sealer(size=300).seal_state(state, BOUND, NOW)


@pytest.mark.parametrize("format_number", [0, 2])
def test_another_format_is_refused(
    monkeypatch: pytest.MonkeyPatch, format_number: int
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(conversation, "FORMAT", format_number)
        text = sealer().seal_state(STATE, BOUND, NOW)
    refused(text)


def test_what_is_sealed_is_an_object(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(jsonrpc, "write", lambda value: b"[]")
        text = sealer().seal_state(STATE, b"", NOW)
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


async def test_flipped_bits_on_the_wire(client: Client) -> None:
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
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = await asked(client, {"key": "k"})
    now = round_trip.now_ms()
    monkeypatch.setattr(round_trip, "now_ms", lambda: now + 599_000)
    assert "result" in await answered(client, {"key": "k"}, state)
    monkeypatch.setattr(round_trip, "now_ms", lambda: now + 601_000)
    found = await answered(client, {"key": "k"}, state)
    assert found["error"]["code"] == -32602


# -- sampling --------------------------------------------------------------------------


USE: Final = SamplingMessage(role="assistant", content=[ToolUse("1", "find", {})])
RESULT: Final = SamplingMessage(role="user", content=[ToolResult("1", [Text("tea")])])
SAID: Final = SamplingMessage(role="user", content=[Text("hello")])
BOTH: Final = SamplingMessage(
    role="assistant", content=[ToolUse("1", "find", {}), ToolUse("2", "find", {})]
)


@pytest.mark.parametrize("version", REVISIONS)
def test_a_text_is_a_message_of_the_user(version: str) -> None:
    content = {"type": "text", "text": "Hi"}
    found = conversation.conversation("Hi", REVISIONS[version])
    assert found == [{"role": "user", "content": content}]


@pytest.mark.parametrize("version", REVISIONS)
def test_several_blocks(version: str) -> None:
    revision = REVISIONS[version]
    blocks = [Text("Look:"), Image(b"\0", "image/png"), Audio(b"\0", "audio/wav")]
    message = SamplingMessage(role="assistant", content=blocks)
    found = conversation.conversation([message], revision)
    assert {each["role"] for each in found} == {"assistant"}
    kinds = [
        each["type"]
        for message in found
        for each in (
            message["content"]
            if revision.sampling_content_lists
            else [message["content"]]
        )
    ]
    assert len(found) == (1 if revision.sampling_content_lists else 3)
    assert kinds[:2] == ["text", "image"]
    assert kinds[2] == ("audio" if "audio" in revision.sampling_content else "text")


@pytest.mark.parametrize("version", REVISIONS)
def test_tools_in_a_conversation(version: str) -> None:
    revision = REVISIONS[version]
    found = conversation.conversation(CONVERSATION, revision)
    contents = [each["content"] for each in found]
    words = [each["text"] for each in contents if "text" in each]
    if "tool_use" in revision.sampling_content:
        assert {"tool_use", "tool_result"} <= {
            each["type"] for each in contents if isinstance(each, dict)
        }
    else:
        assert "[tool use use-1: find]" in words
        assert "[tool result use-1]\ngreen tea" in words


@pytest.mark.parametrize(
    "messages", [[], [SAID], [USE, RESULT], [SAID, USE, RESULT, SAID, USE, RESULT]]
)
def test_balanced(messages: list[SamplingMessage]) -> None:
    for revision in REVISIONS.values():
        assert len(conversation.conversation(messages, revision)) == len(messages)


@pytest.mark.parametrize(
    "messages",
    [
        *([USE], [RESULT], [USE, SAID], [USE, SAID, RESULT], [USE, RESULT, RESULT]),
        [USE, SamplingMessage(role="user", content=[ToolResult("2", [])])],
        [BOTH, RESULT],
        [SamplingMessage(role="assistant", content=[ToolResult("1", [])])],
        [
            USE,
            SamplingMessage(role="user", content=[ToolResult("1", []), Text("more")]),
        ],
    ],
)
def test_unbalanced(messages: list[SamplingMessage]) -> None:
    for revision in REVISIONS.values():
        with pytest.raises(ValueError, match="tool"):
            conversation.conversation(messages, revision)


FIND: Final = ToolDefinition(
    name="find", output_schema={"type": "object", "required": ["tea"]}
)


def test_a_loop_over_tools_ends() -> None:
    check_tools([SAID, *[USE, RESULT] * MAX_TOOL_ROUNDS], [FIND])
    with pytest.raises(ValueError, match='tool_choice="none"'):
        check_tools([SAID, *[USE, RESULT] * (MAX_TOOL_ROUNDS + 1)], [FIND])
    check_tools([SAID, *[USE, RESULT] * (MAX_TOOL_ROUNDS + 1)], [])
    check_tools("Find tea.", [FIND])


def test_what_a_tool_gave_fits_its_output_schema() -> None:
    def given(identifier: str, **structured: str) -> SamplingMessage:
        result = ToolResult(identifier, [], structured or None)
        return SamplingMessage(role="user", content=[result])

    check_tools([USE, given("1", tea="green")], [FIND])
    check_tools([USE, given("1")], [FIND])
    check_tools([USE, given("1", milk="no")], [ToolDefinition(name="find")])
    check_tools([USE, given("1", milk="no")], [ToolDefinition(name="other")])
    with pytest.raises(
        ValueError, match="'1' does not match the output schema of 'find'"
    ):
        check_tools([USE, given("1", milk="no")], [FIND])
