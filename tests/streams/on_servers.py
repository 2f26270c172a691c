"""The log on databases that lock rows; run by `tests/test_databases.py`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from mcp_app.models import Session, Stream
from mcp_app.models.appends import OPEN
from mcp_app.streams.log_writer import Batch, write
from mcp_app.streams.open_session import Use, note_handshakes, note_uses
from tests.streams.logging_rows import OWNER, events, further, opened, own_session

EVER_MS: Final = 10**13

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]


@contextmanager
def locked_in_the_other_order(
    model: type[Session] | type[Stream], first: int, second: int
) -> Iterator[None]:
    """Let somebody lock the second row, and the first when the block waits for it."""
    holds, done = threading.Event(), threading.Event()

    def other() -> None:
        rows = model._default_manager.select_for_update()
        try:
            with transaction.atomic():
                rows.get(pk=second)
                holds.set()
                # By now the batch has the first row, and waits for the second.
                done.wait(1)
                rows.get(pk=first)
        except OperationalError:
            return
        finally:
            connections.close_all()

    thread = threading.Thread(target=other)
    thread.start()
    holds.wait()
    yield
    thread.join()


def test_who_gives_way_begins_again(row: Session) -> None:
    first, second = sorted((opened(row), opened(row)))
    gains = [further(first, b"1"), further(second, b"1")]
    with locked_in_the_other_order(Stream, first, second):
        assert write(Batch(gains, OWNER)) == [first, second]
    assert (len(events(first)), len(events(second))) == (1, 1)


def test_who_uses_a_session_gives_way_to_others_and_begins_again(row: Session) -> None:
    first, second = sorted((row.pk, own_session().pk))
    uses = [Use(second, EVER_MS), Use(first, EVER_MS)]
    with locked_in_the_other_order(Session, first, second):
        assert note_uses(uses) == dict.fromkeys(uses, True)


def test_who_ends_a_handshake_gives_way_to_others_and_begins_again(
    row: Session,
) -> None:
    first, second = sorted((row.pk, own_session().pk))
    with locked_in_the_other_order(Session, first, second):
        assert note_handshakes([second, first]) == {first: True, second: True}


def test_who_uses_many_sessions_locks_them_in_the_order_of_their_keys(
    row: Session,
) -> None:
    """Two processes that note uses of the same sessions do not wait for each other."""
    keys = [row.pk, *(own_session().pk for _ in range(3))]
    with CaptureQueriesContext(connection) as queries:
        note_uses([Use(key, EVER_MS) for key in reversed(keys)])
    [locking] = [each["sql"] for each in queries if " FOR " in each["sql"]]
    # The first column is the key.
    order, _, lock = locking.partition("ORDER BY")[2].partition(" FOR ")
    assert order.strip() == "1 ASC"
    is_postgresql = connection.vendor == "postgresql"
    assert lock == ("NO KEY UPDATE" if is_postgresql else "UPDATE")


@pytest.mark.parametrize("state", [OPEN, "completed"])
@pytest.mark.parametrize("payloads", [[b"1", b"2"], []])
@pytest.mark.parametrize("others", [0, 1])
def test_what_seemed_lost_is_committed_while_it_is_written_again(
    row: Session, state: str, payloads: list[bytes], others: int
) -> None:
    """A server goes on with what it has, and need not know that we left."""
    keys = [opened(row) for _ in range(1 + others)]
    gains = [further(key, *payloads, state=state) for key in keys]
    batch = Batch(gains, OWNER, tried=True)
    holds, done = threading.Event(), threading.Event()

    def late() -> None:
        try:
            with transaction.atomic():
                additions = [gain.to_addition() for gain in gains]
                Stream.objects.append(additions, OWNER, batch.name)
                holds.set()
                # By now the batch waits for its rows.
                done.wait(1)
        finally:
            connections.close_all()

    thread = threading.Thread(target=late)
    thread.start()
    holds.wait()
    assert write(batch) == keys
    thread.join()
    for key in keys:
        assert [text for _, text in events(key)] == [each.decode() for each in payloads]
        assert Stream.objects.get(pk=key).state == state
