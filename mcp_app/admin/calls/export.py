"""Calls as a CSV file, streamed in parts because there may be very many."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final
from unicodedata import normalize

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

from mcp_app.admin.calls.filters import moment
from mcp_app.interface.rules import visible
from mcp_app.models import Call
from mcp_app.models.call_pages import CallQuery, Key
from mcp_app.site_time import local_date, local_time

MOST: Final = 100_000
PART: Final = 2_000
FORMULAS: Final = ("=", "+", "-", "@", "\N{MINUS SIGN}")
"""Characters that begin a formula in a spreadsheet, also in their full-width forms."""
ODD: Final = ("\t", "\r")
"""Characters that a spreadsheet may drop together with the cell separator."""
COLUMNS: Final = (
    "time",
    "outcome",
    "kind",
    "name",
    "version",
    "server",
    "user",
    "let_in_by",
    "client",
    "client_version",
    "revision",
    "took_ms",
    "bytes",
    "argument_bytes",
    "error_number",
    "told",
)


def response(request: HttpRequest, sought: CallQuery) -> StreamingHttpResponse:
    """Return the response; under ASGI a thread makes each part when it is sent."""
    parts: Any = csv_chunks(sought)
    if isinstance(request, ASGIRequest):
        parts = _on_loop(parts)
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


async def _on_loop(parts: Iterator[str]) -> AsyncIterator[str]:
    following = sync_to_async(lambda: next(parts, ""))
    while part := await following():
        yield part


class _CsvBuffer:
    """A file-like object that collects what `csv.writer` writes."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def write(self, line: str) -> None:
        self._lines.append(line)

    def taken(self) -> str:
        lines, self._lines = self._lines, []
        return "".join(lines)


def csv_chunks(sought: CallQuery) -> Iterator[str]:
    """Yield the file, newest calls first and at most `MOST`, in a part per page."""
    buffer = _CsvBuffer()
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    for calls in _pages(sought):
        writer.writerows([cell(value) for value in _values(call)] for call in calls)
        yield buffer.taken()


def _pages(sought: CallQuery) -> Iterator[list[Call]]:
    """Yield pages until there are no more calls, or `MOST` were yielded."""
    older: Key | None = None
    left, known = MOST, set[int]()
    while left:
        most = min(left, PART)
        found = Call.objects.page(sought, most, older=older)
        calls = [call for call in found if call.pk not in known]
        yield calls
        left -= len(calls)
        known = {call.pk for call in calls}
        following = _after(sought, older, found, most)
        if following in (None, older):
            return
        older = following


def _after(
    sought: CallQuery, older: Key | None, found: list[Call], most: int
) -> Key | None:
    """Return the key after which there may be more calls, None if there are none."""
    if len(found) == most:
        return Key(found[-1].time_ms, found[-1].pk)
    return Call.objects.looked_for(sought, older).back_to if sought.rest else None


def cell(value: object) -> str:
    """Return the text of a cell: never a formula, and hidden characters shown."""
    text = str(value)
    # Some spreadsheets drop leading blanks and read full-width signs as plain ones.
    sign = normalize("NFKC", text.lstrip()[:1])
    formula = text.startswith(ODD) or sign.startswith(FORMULAS)
    return visible(f"'{text}" if formula else text, None)


def _values(call: Call) -> tuple[object, ...]:
    return (
        local_time(moment(call.time_ms)).isoformat(timespec="milliseconds"),
        call.outcome,
        call.kind,
        call.name,
        call.version,
        call.server,
        call.user_name,
        call.principal,
        call.client_name,
        call.client_version,
        call.revision,
        call.took_us / 1_000,
        call.size,
        call.arguments_size,
        call.failure,
        call.error,
    )
