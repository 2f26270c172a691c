"""All that goes with time, whoever removes it: each table is asked for once."""

from __future__ import annotations

import pytest

from mcp_app.audit.expiry import expired_calls
from mcp_app.auth.rights import expired_apps, expired_assertions
from mcp_app.conf import Limits
from mcp_app.invalidation.compaction import expired_changes
from mcp_app.invalidation.workers import expired_workers
from mcp_app.process.janitor import all_expired_rows
from mcp_app.streams.event_subscriptions import expired_webhooks
from mcp_app.streams.occurrences import expired_occurrences
from mcp_app.streams.retention import expired_streams
from mcp_app.streams.tasks import expired_tasks

pytestmark = pytest.mark.django_db


def test_each_room_says_what_expires() -> None:
    limits = Limits()
    names = [each.what for each in all_expired_rows(limits)]
    rooms = (
        expired_streams(limits),
        expired_tasks(limits),
        expired_occurrences(limits),
        expired_webhooks(),
        expired_calls(limits),
        expired_apps(),
        [expired_assertions()],
        expired_changes(),
        expired_workers(),
    )
    assert all(rooms)
    assert names == [each.what for room in rooms for each in room]
    # People and the log tell them apart by these.
    assert len({*names}) == len(names)
    # Of nothing nothing goes.
    assert not any(each.remove() for each in all_expired_rows(limits))
