"""What connections to each kind of database are opened with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

OPTIONS: Final[Mapping[str, Mapping[str, object]]] = {
    "django.db.backends.sqlite3": {
        # A transaction that reads first and writes later cannot wait for the lock.
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    },
    # A host that is lost says nothing. None of these ends a statement that is slow.
    "django.db.backends.postgresql": {
        "connect_timeout": 10,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
    },
    # Its read_timeout would end slow ones: a migration of a large table, say.
    "django.db.backends.mysql": {"connect_timeout": 10, "write_timeout": 30},
}
"""Options by engine; times are seconds, but for `tcp_user_timeout`: milliseconds."""


def with_options(database: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of DATABASES with our options, where it has no others."""
    options = OPTIONS.get(database["ENGINE"], {})
    return {**database, "OPTIONS": {**options, **database.get("OPTIONS", {})}}
