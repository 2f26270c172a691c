"""Calls as a CSV file, streamed in parts because there may be very many."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator, Iterator
from io import StringIO
from typing import Any, Final
from unicodedata import normalize

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

from mcp_app.admin.calls.filters import stored_time
from mcp_app.interface.rules import visible
from mcp_app.models import Call
from mcp_app.models.call_rows import CallQuery, Key
from mcp_app.site_time import local_date, local_time

MAX_EXPORTED_CALLS: Final = 100_000
PART: Final = 2_000
"""How many calls are read and sent at once."""
FORMULAS: Final = ("=", "+", "-", "@", "\N{MINUS SIGN}")
"""Characters that begin a formula in a spreadsheet, also in their full-width forms."""
ODD: Final = ("\t", "\r")
"""Characters that a spreadsheet may drop together with the cell separator."""
COLUMNS: Final = {
    "time": "time_ms",
    "outcome": "outcome",
    "kind": "kind",
    "name": "name",
    "version": "version",
    "server": "server",
    "user": "user_name",
    "let_in_by": "principal",
    "client": "client_name",
    "client_version": "client_version",
    "revision": "revision",
    "took_ms": "took_us",
    "bytes": "size",
    "argument_bytes": "arguments_size",
    "error_number": "failure",
    "told": "error",
}
"""The columns of the file, and those of a call that they show."""


def csv_response(request: HttpRequest, sought: CallQuery) -> StreamingHttpResponse:
    """Return the response; under ASGI a thread makes each part when it is sent."""
    parts: Any = csv_chunks(sought)
    if isinstance(request, ASGIRequest):
        parts = _async_chunks(parts)
    day = local_date().isoformat()
    return StreamingHttpResponse(
        parts,
        content_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="mcp-calls-{day}.csv"',
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        },
    )


async def _async_chunks(parts: Iterator[str]) -> AsyncIterator[str]:
    following = sync_to_async(lambda: next(parts, ""))
    while part := await following():
        yield part


def csv_chunks(sought: CallQuery) -> Iterator[str]:
    """Yield the file, newest calls first and at most `MAX_EXPORTED_CALLS`, in a part
    per page."""
    header = [tuple(COLUMNS)]
    for calls in _call_pages(sought):
        part = StringIO()
        writer = csv.writer(part)
        writer.writerows(header)
        header = []
        for call in calls:
            values = {name: getattr(call, column) for name, column in COLUMNS.items()}
            time = local_time(stored_time(call.time_ms))
            values["time"] = time.isoformat(timespec="milliseconds")
            values["took_ms"] = call.took_us / 1_000
            writer.writerow(map(csv_cell_text, values.values()))
        yield part.getvalue()


def _call_pages(sought: CallQuery) -> Iterator[list[Call]]:
    """Yield pages of calls, `MAX_EXPORTED_CALLS` of them at most."""
    older: Key | None = None
    calls_left, last_keys = MAX_EXPORTED_CALLS, set[int]()
    while calls_left:
        limit = min(calls_left, PART)
        rows = Call.objects.page(sought, limit, older=older)
        # A search that stopped early goes on with its whole last millisecond.
        calls = [call for call in rows if call.pk not in last_keys]
        yield calls
        calls_left -= len(calls)
        last_keys = {call.pk for call in calls}
        following: Key | None = None
        if len(rows) == limit:
            following = Key(rows[-1].time_ms, rows[-1].pk)
        elif sought.conditions:
            following = Call.objects.looked_for(sought, older).back_to
        if following in (None, older):
            return
        older = following


def csv_cell_text(value: object) -> str:
    """Return the text of a cell: never a formula, and hidden characters shown."""
    text = str(value)
    # Some spreadsheets drop leading blanks and read full-width signs as plain ones.
    sign = normalize("NFKC", text.lstrip()[:1])
    formula = text.startswith(ODD) or sign.startswith(FORMULAS)
    return visible(f"'{text}" if formula else text, None)
