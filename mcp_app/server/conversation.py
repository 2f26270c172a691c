"""What a session's client may say, and when: one set of rules for every transport.

The rules are about values, so that a transport only asks and acts: nothing here waits,
writes, or knows where a session is kept.  What is wrong with a message is raised before
anything of it is done.  `revision` is the session's, None before `initialize`.
"""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mcp_app.protocol import envelope, negotiation
from mcp_app.protocol.envelope import Notification, Reply, Request
from mcp_app.protocol.errors import InvalidParams, InvalidRequest

if TYPE_CHECKING:
    from mcp_app.protocol.envelope import RequestId
    from mcp_app.protocol.revisions import Revision

BEFORE_INITIALIZE: Final = frozenset({"initialize", "ping"})
"""The requests that need no session (basic/lifecycle, "Initialization")."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The messages of a batch, in their order; the requests are answered."""

    requests: list[Request]
    others: list[Notification | Reply]
    """They are taken first: what they change counts for the requests."""


class MixedEras(InvalidRequest):
    """A batch holds a message of the stateless era."""


def check_turn(method: str, revision: Revision | None) -> None:
    """Raise InvalidRequest unless a session takes a request of this method now.

    That is `initialize` once, and nothing but `ping` before it (basic/lifecycle).
    """
    if revision is None:
        if method not in BEFORE_INITIALIZE:
            raise InvalidRequest("Server not initialized: send initialize first.")
    elif method == "initialize":
        raise InvalidRequest("This session is initialized already.")


def check_id(request_id: RequestId, running: Container[RequestId]) -> None:
    """Raise InvalidRequest for the id of a request that is running (basic)."""
    if request_id in running:
        raise InvalidRequest(
            f"A request with the id {request_id!r} is running in this session."
        )


def read_batch(
    value: list[object],
    revision: Revision | None,
    running: Container[RequestId],
    *,
    most: int,
    lenient: bool,
) -> Batch:
    """Return the messages of a batch of at most so many; raise InvalidRequest.

    Only 2025-03-26 has batches (basic, "Batching"); `initialize` is in none
    (basic/lifecycle, "Initialization"), nor is a message of the stateless era.
    """
    check_batches(revision)
    messages = envelope.parse_batch(value, most, lenient=lenient)
    batch = Batch(
        [each for each in messages if isinstance(each, Request)],
        [each for each in messages if not isinstance(each, Request)],
    )
    for each in messages:
        if not isinstance(each, Reply) and negotiation.is_stateless(each.params, None):
            raise MixedEras("A message of the stateless era is in no batch.")
    for request in batch.requests:
        if request.method == "initialize":
            raise InvalidRequest("initialize must be a message of its own.")
        check_id(request.id, running)
        with suppress(InvalidParams):
            # Of those each is answered by itself.
            negotiation.meta_of(request.params)
    return batch


def check_batches(revision: Revision | None) -> None:
    """Raise InvalidRequest unless the session's revision has batches."""
    if revision is None or not revision.batches:
        raise InvalidRequest(
            "Send a single message: only a session of 2025-03-26 takes a batch."
        )
