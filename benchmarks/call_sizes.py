"""What calls take in a database: `python -m benchmarks.call_sizes [CALLS]`.

In an environment whose `DATABASE_URL` names an empty database.  It writes the calls as
the call log does, once as they usually are and once with texts as long as they may be;
then it removes half of them as the janitor does.  Prints bytes for a million calls,
with their indexes, and how many a second were written and removed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

import django

CALLS: Final = 100_000
BATCH: Final = 2_000
TOOLS: Final = 40
PEOPLE: Final = 500
APART_S: Final = 0.05
"""Between two calls."""
MEBIBYTE: Final = 2**20
TABLE: Final = "mcp_app_call"

SIZES: Final = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
    "postgresql": "SELECT pg_total_relation_size('mcp_app_call')",
    "mysql": (
        "SELECT SUM(file_size) FROM information_schema.innodb_sys_tablespaces"
        " WHERE name = CONCAT(DATABASE(), '/mcp_app_call')"
    ),
}
FIRST: Final = {"postgresql": f"VACUUM ANALYZE {TABLE}"}
"""What is done before it is measured."""


def main(count: int = CALLS) -> None:
    """Write, measure, remove, and print."""
    django.setup()
    from django.core.management import call_command  # noqa: PLC0415
    from django.db import connection  # noqa: PLC0415

    from mcp_app.models import Call  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    assert not Call.objects.exists(), "The database has calls already."
    print(f"{connection.vendor}, {count:,} calls:")
    for name, longest in (("usual", False), ("longest", True)):
        before, began = _size(), time.perf_counter()
        _write(count, longest)
        wrote = count / (time.perf_counter() - began)
        assert Call.objects.count() == count
        size = (_size() - before) / count * 1_000_000 / MEBIBYTE
        print(
            f"{name:8} {size:7,.0f} MiB a million, {wrote:9,.0f} written a second,"
            f" {_removed(count):9,.0f} removed a second"
        )
        with connection.cursor() as cursor:
            truncate = connection.vendor != "sqlite"
            cursor.execute(f"{'TRUNCATE' if truncate else 'DELETE FROM'} {TABLE}")
            if connection.vendor == "sqlite":
                cursor.execute("VACUUM")


def _size() -> int:
    from django.db import connection  # noqa: PLC0415

    with connection.cursor() as cursor:
        if connection.vendor in FIRST:
            cursor.execute(FIRST[connection.vendor])
        cursor.execute(SIZES[connection.vendor])
        return int(cursor.fetchone()[0])


def _write(count: int, longest: bool) -> None:
    """Write so many calls, the last of which ends now."""
    from mcp_app.audit.records import PendingCalls  # noqa: PLC0415
    from mcp_app.audit.writing import Batch, write  # noqa: PLC0415

    now, calls = time.monotonic(), PendingCalls()
    for number, (shared, failure, error) in enumerate(_calls(count, longest)):
        began = now - (count - number) * APART_S
        arguments = b'{"order":%d}' % number
        calls.add((shared, began, 0.004, 120, arguments, 0, "", failure, error))
        if len(calls) == BATCH or number == count - 1:
            write(Batch(f"{longest}", number + 1, calls, _digest))
            calls = PendingCalls()


def _calls(count: int, longest: bool) -> Iterator[tuple[Any, str, str]]:
    for number in range(count):
        failed = longest or number % 50 == 0
        person = f"person{number * 7 % PEOPLE}"
        shared: tuple[Any, ...] = (
            "default",
            "tool",
            f"orders_{number * 11 % TOOLS}_find",
            3,
            "crashed" if failed else "answered",
            "access-token",
            f"{number * 7 % PEOPLE}",
            person,
            sha256(person.encode()).hexdigest()[:16],
            "claude-ai",
            "0.1.0",
            sha256(person.encode()).hexdigest()[:16],
            "2025-11-25",
        )
        error = "orders_find failed. Its error number in the log is 00000000."
        if longest:
            texts = {2: 125, 6: 125, 7: 125, 8: 125, 9: 125, 10: 64}
            shared = tuple(
                f"{number * 11 % TOOLS:𝄞>{texts[place]}}" if place in texts else value
                for place, value in enumerate(shared)
            )
            error = "𝄞" * 125
        yield shared, f"{number:08x}" if failed else "", error if failed else ""


def _digest(arguments: bytes) -> str:
    return sha256(arguments).hexdigest()[:32]


def _removed(count: int) -> float:
    """Remove the older half; return how many went a second."""
    from mcp_app.audit.expiry import expired_calls  # noqa: PLC0415
    from mcp_app.conf import Limits  # noqa: PLC0415
    from mcp_app.models import Call  # noqa: PLC0415

    limits = replace(Limits(), calls_rows=count // 2)
    rows, began = expired_calls(limits)[1], time.perf_counter()
    while rows.remove() is not None:
        continue
    took = time.perf_counter() - began
    assert Call.objects.count() == count // 2
    return count / 2 / took


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
