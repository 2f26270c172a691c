"""One table of handlers: what any revision knows is in it, and nothing else."""

from __future__ import annotations

from mcp_app.protocol.revisions import REVISIONS
from mcp_app.server.handlers import HANDLERS


def test_each_method_of_a_revision_has_a_handler() -> None:
    known = {name for each in REVISIONS.values() for name in each.methods}
    # Streams of changes are the transport's.
    assert known == HANDLERS.keys() | {"subscriptions/listen"}
