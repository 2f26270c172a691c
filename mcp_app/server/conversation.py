"""Which messages a session takes, and when: one set of rules for every transport.

The functions only check values: they do not wait, write, or look up sessions.  Errors
are raised before any part of a message takes effect.  `revision` is that of the
session; it is None before `initialize`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Final

from mcp_app.interface.errors import TooManyQuestions
from mcp_app.interface.questions import SamplingMessage
from mcp_app.pools.turns import Owner
from mcp_app.protocol import envelope, jsonrpc, negotiation, schemas
from mcp_app.protocol.content import Text, ToolResult, ToolUse, sampling_block_to_wire
from mcp_app.protocol.cursors import Sealer, TooLarge
from mcp_app.protocol.envelope import Notification, Reply, Request
from mcp_app.protocol.errors import InvalidParams, InvalidRequest
from mcp_app.protocol.json_types import JsonObject

if TYPE_CHECKING:
    from mcp_app.conf import Limits
    from mcp_app.interface.definitions import ToolDefinition
    from mcp_app.protocol.envelope import RequestId
    from mcp_app.protocol.revisions import Revision

BEFORE_INITIALIZE: Final = frozenset({"initialize", "ping"})
"""The requests that need no session (basic/lifecycle, "Initialization")."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The messages of a batch, in their order; the requests are answered."""

    requests: list[Request]
    others: list[Notification | Reply]
    """They are taken first: their effects count for the requests."""


class MixedEras(InvalidRequest):
    """A batch holds a message of the stateless era."""


def check_turn(method: str, revision: Revision | None) -> None:
    """Raise InvalidRequest unless a session takes a request of this method now.

    `initialize` comes once, and only `ping` may come before it (basic/lifecycle).
    """
    if revision is None:
        if method not in BEFORE_INITIALIZE:
            raise InvalidRequest("Server not initialized: send initialize first.")
    elif method == "initialize":
        raise InvalidRequest("This session is initialized already.")


def check_request_id(request_id: RequestId, running: Container[RequestId]) -> None:
    """Raise InvalidRequest for the id of a request that is running (basic)."""
    if request_id in running:
        message = f"A request with the id {request_id!r} is running in this session."
        raise InvalidRequest(message)


def read_batch(
    value: list[object],
    revision: Revision | None,
    running: Container[RequestId],
    *,
    limit: int,
    lenient: bool,
) -> Batch:
    """Return the messages of a batch, at most `limit`; raise InvalidRequest.

    Only 2025-03-26 has batches (basic, "Batching").  They must not hold `initialize`
    (basic/lifecycle, "Initialization") or a message of the stateless era.
    """
    check_batches(revision)
    messages = envelope.parse_batch(value, limit, lenient=lenient)
    batch = Batch(
        [message for message in messages if isinstance(message, Request)],
        [message for message in messages if not isinstance(message, Request)],
    )
    for each in messages:
        if not isinstance(each, Reply) and negotiation.is_stateless(each.params, None):
            raise MixedEras("A message of the stateless era must not be in a batch.")
    for request in batch.requests:
        if request.method == "initialize":
            raise InvalidRequest("Send initialize as a single message, not in a batch.")
        check_request_id(request.id, running)
        with suppress(InvalidParams):
            # A request with bad parameters gets its own error later.
            negotiation.meta_of(request.params)
    return batch


def check_batches(revision: Revision | None) -> None:
    """Raise InvalidRequest unless the session's revision has batches."""
    if revision is None or not revision.batches:
        raise InvalidRequest(
            "Send a single message. Only sessions of revision 2025-03-26 accept"
            " batches."
        )


# -- question places -------------------------------------------------------------------
# Limits how many questions of a person may be open, and how many may hold a thread.
#
# At the limit of waiting threads, the person with the most of them gives up the oldest
# for a person with fewer.  So no person can keep others from being asked, and strangers
# cannot keep out people who have signed in.

OF_PERSON: Final = (
    "Too many questions are open: {count} wait for an answer, {more} more cannot be"
    " asked, and one person can have {limit} at a time. Ask the user to answer those"
    " that are open, then call again."
)
NO_THREAD: Final = (
    "Too many questions are open: the server waits for as many people as it can. Tell"
    " the user, and call again in a minute."
)
QUESTION_WITHDRAWN: Final = (
    "Too many questions are open: this one was taken back unanswered, so that others"
    " can be asked. Ask the user to answer those that are open, then call again."
)


@dataclass(slots=True, eq=False, kw_only=True)
class Place:
    """A call that waits for answers."""

    owner: Owner
    questions: int
    in_thread: bool
    give_up: Callable[[], object]
    """Ends the wait soon."""
    is_withdrawn: bool = False
    """Whether another call took the place."""


class QuestionPlaces:
    """The calls of a process that wait for answers; used on the loop only."""

    def __init__(self, limits: Limits, threads: int) -> None:
        self._limits = limits
        self._open: Counter[str] = Counter()
        self._in_threads: dict[Place, None] = {}
        self._max_in_threads = max(1, threads // 2)

    @contextmanager
    def hold_place(self, place: Place) -> Iterator[None]:
        """Hold a place while its questions are open; raise `TooManyQuestions`."""
        if not self._limits.rates:
            yield
            return
        person, limit = place.owner.person, self._limits.questions_per_person
        count = self._open[person]
        if person and count + place.questions > limit:
            message = OF_PERSON.format(count=count, more=place.questions, limit=limit)
            raise TooManyQuestions(message)
        if place.in_thread:
            self._make_room(place)
            self._in_threads[place] = None
        self._open[person] += place.questions
        try:
            yield
        finally:
            self._open -= Counter({person: place.questions})
            self._in_threads.pop(place, None)

    def _make_room(self, place: Place) -> None:
        """Make room for a thread that waits; at the limit, another one gives up."""
        if len(self._in_threads) < self._max_in_threads:
            return
        shares = Counter(thread.owner for thread in self._in_threads)

        def weight_of(owner: Owner) -> int:
            # A stranger counts as if it had one place more.
            return shares[owner] + owner.stranger

        owner = max(shares, key=lambda each: (weight_of(each), each.stranger))
        # With a smaller difference, they would take the place from each other in turns.
        if weight_of(owner) < weight_of(place.owner) + 2:
            raise TooManyQuestions(NO_THREAD)
        oldest = next(thread for thread in self._in_threads if thread.owner == owner)
        del self._in_threads[oldest]
        oldest.is_withdrawn = True
        oldest.give_up()


# -- request state ---------------------------------------------------------------------
# The sealed state of a multi round-trip request (2026-07-28, basic/patterns/mrtr).
#
# It is bound to principal, server, method, target and arguments: if a client sends it
# with another request, it is refused like altered state.

FORMAT = 1
REFUSED = "The request state is not valid for this request, or has expired."


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestState:
    """The state in a retry: digests of open questions, and earlier answers.

    Each answer comes with the digest of the question that it answers.
    `round_trip` names the whole conversation: `once` steps belong to it.
    """

    round_trip: str
    open_digests: dict[str, str] = field(default_factory=dict)
    answered: dict[str, tuple[str, JsonObject]] = field(default_factory=dict)


def state_binding(
    principal: str, server: str, method: str, target: str, arguments: object
) -> bytes:
    """Return the associated data that a state is bound to."""
    digest = sha256(jsonrpc.canonical(arguments)).hexdigest()
    return jsonrpc.canonical([principal, server, method, target, digest])


class StateSealer:
    """Seals with the first key; opens with any, so that keys can be rotated."""

    def __init__(self, secrets: Sequence[str], *, age: float, size: int) -> None:
        self._sealer = Sealer(secrets, "request-state", size=size)
        self._age_ms = int(age * 1000)
        self._size = size

    def seal_state(self, state: RequestState, binding: bytes, now_ms: int) -> str:
        """Return an opaque string; raise ValueError if it would be too large."""
        payload = {
            "v": FORMAT,
            "r": state.round_trip,
            "e": now_ms + self._age_ms,
            "q": state.open_digests,
            "a": state.answered,
        }
        try:
            return self._sealer.seal(payload, binding)
        except TooLarge as error:
            raise ValueError(
                f"The answers so far need {error.size} bytes of request state; at most"
                f" {self._size} are allowed."
            ) from None

    def open_state(self, text: object, binding: bytes, now_ms: int) -> RequestState:
        """Return the state; every failure is the same `InvalidParams`."""
        payload = self._sealer.open(text, binding)
        if payload is None or payload["v"] != FORMAT or payload["e"] <= now_ms:
            raise InvalidParams(REFUSED)
        return RequestState(
            round_trip=payload["r"],
            open_digests=payload["q"],
            answered={key: tuple(answer) for key, answer in payload["a"].items()},
        )


# -- sampling --------------------------------------------------------------------------
# Conversations for sampling, as each revision has them (client/sampling).

MAX_TOOL_ROUNDS: Final = 50
"""How many messages of a conversation may call tools."""


def conversation(
    messages: str | Sequence[SamplingMessage], revision: Revision
) -> list[JsonObject]:
    """Return the messages in the revision's form.

    Raises ValueError if a tool use lacks its result, or a result its tool use.
    """
    if isinstance(messages, str):
        messages = [SamplingMessage(role="user", content=[Text(messages)])]
    _check_tool_uses(messages)
    return [*chain.from_iterable(_wire_messages(each, revision) for each in messages)]


def _wire_messages(message: SamplingMessage, revision: Revision) -> list[JsonObject]:
    blocks = [sampling_block_to_wire(each, revision) for each in message.content]
    if len(blocks) > 1 and revision.sampling_content_lists:
        return [{"role": message.role, "content": blocks}]
    # Before 2025-11-25 a message has one block, so each block becomes a message.
    return [{"role": message.role, "content": block} for block in blocks]


def _check_tool_uses(messages: Sequence[SamplingMessage]) -> None:
    """Raise unless the message after a tool use holds exactly its results."""
    use_ids: set[str] = set()
    for message in messages:
        results = [each for each in message.content if isinstance(each, ToolResult)]
        if results and (message.role != "user" or len(results) < len(message.content)):
            raise ValueError(
                "A message with tool results must have the role user and no other"
                " content."
            )
        result_ids = {result.tool_use_id for result in results}
        if result_ids != use_ids:
            raise _unbalanced_error(result_ids ^ use_ids)
        use_ids = {each.id for each in message.content if isinstance(each, ToolUse)}
    if use_ids:
        raise _unbalanced_error(use_ids)


def check_tools(
    messages: str | Sequence[SamplingMessage], tools: Sequence[ToolDefinition]
) -> None:
    """Raise ValueError if tools were used too often, or a result breaks its schema.

    A loop of tool calls must end (client/sampling, "Security").
    """
    if isinstance(messages, str) or not tools:
        return
    uses = [
        [each for each in message.content if isinstance(each, ToolUse)]
        for message in messages
    ]
    if sum(map(bool, uses)) > MAX_TOOL_ROUNDS:
        raise ValueError(
            f"The model has used tools {MAX_TOOL_ROUNDS} times in this conversation,"
            ' which is the limit. Offer no more tools, or set tool_choice="none".'
        )
    names_by_id = {each.id: each.name for each in chain.from_iterable(uses)}
    output_schemas = {tool.name: tool.output_schema for tool in tools}
    for each in chain.from_iterable(message.content for message in messages):
        if not isinstance(each, ToolResult) or each.structured is None:
            continue
        name = names_by_id.get(each.tool_use_id, "")
        schema = output_schemas.get(name)
        if schema and not schemas.compile_schema(schema).is_valid(each.structured):
            raise ValueError(
                f"The result {each.tool_use_id!r} does not match the output schema of"
                f" {name!r}."
            )


def _unbalanced_error(identifiers: set[str]) -> ValueError:
    return ValueError(
        "Each tool use needs a result in the next message, and each result a tool use"
        f" in the message before. These have none: {', '.join(sorted(identifiers))}."
    )
