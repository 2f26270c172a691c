"""Which messages a session takes, and when: one set of rules for every transport.

The functions only check values: they do not wait, write, or look sessions up.  Errors
are raised before any part of a message takes effect.  `revision` is the session's, None
before `initialize`.
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
            raise MixedEras("A message of the stateless era must not be in a batch.")
    for request in batch.requests:
        if request.method == "initialize":
            raise InvalidRequest("Send initialize as a single message, not in a batch.")
        check_id(request.id, running)
        with suppress(InvalidParams):
            # Each of these gets its own error.
            negotiation.meta_of(request.params)
    return batch


def check_batches(revision: Revision | None) -> None:
    """Raise InvalidRequest unless the session's revision has batches."""
    if revision is None or not revision.batches:
        raise InvalidRequest(
            "Send a single message. Only sessions of revision 2025-03-26 accept"
            " batches."
        )
