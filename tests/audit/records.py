"""Calls as a process hands them over, for tests."""

from __future__ import annotations

import time
from hashlib import sha256
from itertools import count
from uuid import uuid4

from mcp_app.audit.tallies import Tallies
from mcp_app.audit.writing import CallBatch, PendingCalls
from mcp_app.interface.call_record import CallRecord, Circumstances, Ending, Outcome

_numbers = count(1)


def circumstances(
    name: str = "add", outcome: str = "answered", **other: str
) -> Circumstances:
    given = {"server": "default", "kind": "tool", "user": "", "client": "c", **other}
    return Circumstances(
        server=given["server"],
        kind=given["kind"],
        name=name,
        version=1,
        outcome=outcome,
        principal="user",
        user_id=given["user"],
        user_name=given["user"],
        principal_client="family",
        client_name=given["client"],
        client_version="1",
        session="handle",
        revision="2026-07-28",
    )


def record(
    took: float = 0.001,
    *,
    ago: float = 0,
    arguments: bytes = b"{}",
    failure: str = "",
    error: str = "",
    **of: str,
) -> CallRecord:
    """Return a call that began so many seconds ago, and took so many."""
    began = time.monotonic() - ago
    common = circumstances(**of)
    ending = Ending(Outcome(common.outcome), error, failure)
    return CallRecord(common, began, took, 100, arguments, 0, "", ending)


def digest(arguments: bytes) -> str:
    return sha256(arguments).hexdigest()[:32]


def batch(
    *records: CallRecord,
    writer: str = "",
    number: int = 0,
    tallies: Tallies | None = None,
) -> CallBatch:
    """Return a batch; without a number it has the next one of all."""
    gathered = PendingCalls()
    for each in records:
        gathered.add(each)
    return CallBatch(
        writer or uuid4().hex,
        number or next(_numbers),
        gathered,
        digest,
        tallies or Tallies(),
    )
