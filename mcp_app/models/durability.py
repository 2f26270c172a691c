"""Checks of how a database is set up: does it keep what it has committed?

If it does not, data may be lost of which a client was told that it is stored.
Our transactions are right only at the isolation level that they are made for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

from django.db import connections

MOUNTS: Final = Path("/proc/self/mounts")
NETWORKS: Final = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs")
READ_COMMITTED: Final = "read-committed"
"""As the MySQL family writes it, in small letters."""


class Kind(IntEnum):
    """What is at stake; the number is that of the check's message."""

    DURABILITY = 10
    ENGINE = 11
    ISOLATION = 12
    POOLER = 13
    REPLICAS = 14
    LOCKS = 15
    CHARACTERS = 39


@dataclass(frozen=True, slots=True)
class Doubt:
    """A sentence about what is wrong, and one about how to set it."""

    kind: Kind
    sentence: str
    remedy: str


def doubts(using: str) -> list[Doubt]:
    """Ask a database how it is set up; blocks, and raises what Django raises."""
    return list(_DOUBTS_BY_VENDOR[connections[using].vendor](using))


def _durability_doubt(setting: str, stake: str, remedy: str) -> Doubt:
    return Doubt(Kind.DURABILITY, f"The database has {setting}: {stake}", remedy)


LOST: Final = (
    "if its machine crashes, committed data may be lost. Clients may then miss"
    " messages that were stored, and a call may run a second time."
)


# -- PostgreSQL -----------------------------------------------------------------------

_POSTGRESQL: Final = """
    SELECT name, setting FROM pg_settings WHERE name IN
    ('fsync', 'full_page_writes', 'synchronous_commit', 'transaction_isolation')
    UNION ALL SELECT 'pid', pg_backend_pid()::text
"""


def _of_postgresql(using: str) -> Iterator[Doubt]:
    values = _values_by_name(using, _POSTGRESQL)
    connection: Any = connections[using]
    yield from on_postgresql(values)
    disabled = connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS")
    # A pooler in between has given the connection a number of its own.
    if str(connection.connection.info.backend_pid) != values["pid"] and not disabled:
        yield Doubt(
            Kind.POOLER,
            "There is a connection pooler between Django and PostgreSQL. If it gives"
            " each transaction another connection, a server-side cursor is lost"
            " before it is read.",
            'Set DISABLE_SERVER_SIDE_CURSORS = True in DATABASES, or "session" as the'
            " pooler's mode.",
        )


def on_postgresql(values: Mapping[str, str]) -> Iterator[Doubt]:
    """Judge settings as `pg_settings` has them."""
    for name in ("fsync", "full_page_writes"):
        if values[name] != "on":
            yield _durability_doubt(
                f"{name} = {values[name]}",
                f"{LOST} The database itself may be beyond repair.",
                f"Set {name} = on in postgresql.conf.",
            )
    if values["synchronous_commit"] == "off":
        yield _durability_doubt(
            "synchronous_commit = off",
            LOST,
            "Set synchronous_commit = on in postgresql.conf, for the role (ALTER ROLE"
            ' … SET synchronous_commit = on), or in DATABASES with OPTIONS "options":'
            ' "-c synchronous_commit=on".',
        )
    yield from _isolation_doubts(values["transaction_isolation"])


def _isolation_doubts(level: str) -> Iterator[Doubt]:
    if level.lower().replace(" ", "-") != READ_COMMITTED:
        yield Doubt(
            Kind.ISOLATION,
            f"The isolation level of transactions is {level}. If two of them publish"
            " or change definitions at the same time, they fail or wait, and may not"
            " see what was published meanwhile.",
            "Set the isolation level to read committed (Django's default) in DATABASES"
            " under OPTIONS, and raise it only in transactions that need more.",
        )


# -- MySQL and MariaDB ----------------------------------------------------------------

_MYSQL: Final = """
    SHOW VARIABLES WHERE Variable_name IN
    ('innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'log_bin', 'sync_binlog',
     'transaction_isolation', 'tx_isolation', 'wsrep_on', 'wsrep_sync_wait')
"""
_ENGINES: Final = """
    SELECT table_name, engine FROM information_schema.tables
    WHERE table_schema = DATABASE() AND table_name LIKE 'mcp\\_app\\_%%'
"""
_CHARACTERS: Final = """
    SELECT table_name, character_set_name FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name LIKE 'mcp\\_app\\_%%'
    AND character_set_name <> 'utf8mb4'
"""


def _of_mysql(using: str) -> Iterator[Doubt]:
    yield from on_mysql(_values_by_name(using, _MYSQL))
    for table, characters in sorted(_values_by_name(using, _CHARACTERS).items())[:1]:
        yield Doubt(
            Kind.CHARACTERS,
            f"{table}, a table of mcp_app, has columns in {characters}, which cannot"
            " store all that people write.",
            "ALTER TABLE … CONVERT TO CHARACTER SET utf8mb4 for each; ALTER DATABASE …"
            " CHARACTER SET utf8mb4 before migrate.",
        )
    engines = _values_by_name(using, _ENGINES).items()
    if bad_tables := [each for each in engines if each[1] != "InnoDB"]:
        table, engine = bad_tables[0]
        yield Doubt(
            Kind.ENGINE,
            f"{len(bad_tables)} of mcp_app's tables do not use InnoDB, such as {table}"
            f" ({engine}). Their engine has no transactions, so data that is written"
            " together can be read, or lost, in parts.",
            f"ALTER TABLE {table} ENGINE = InnoDB; and default_storage_engine ="
            " InnoDB for new tables.",
        )


def on_mysql(values: Mapping[str, str]) -> Iterator[Doubt]:
    """Judge variables as `SHOW VARIABLES` has them; some servers lack some."""
    flushed = values.get("innodb_flush_log_at_trx_commit", "1")
    if flushed != "1":
        yield _durability_doubt(
            f"innodb_flush_log_at_trx_commit = {flushed}",
            LOST,
            "Set innodb_flush_log_at_trx_commit = 1 in the server's configuration.",
        )
    if values.get("innodb_doublewrite") in ("OFF", "0"):
        yield _durability_doubt(
            "innodb_doublewrite = OFF",
            f"{LOST} The database itself may be beyond repair.",
            "Set innodb_doublewrite = ON in the server's configuration.",
        )
    if values.get("log_bin") == "ON" and values.get("sync_binlog") != "1":
        yield _durability_doubt(
            f"sync_binlog = {values.get('sync_binlog')}",
            "if its machine crashes, committed data may be missing in replicas and in"
            " anything restored from the binary log.",
            "Set sync_binlog = 1 in the server's configuration.",
        )
    level = values.get("transaction_isolation") or values.get("tx_isolation")
    yield from _isolation_doubts(level or READ_COMMITTED)
    # The lowest bit of `wsrep_sync_wait` is for reads.
    if values.get("wsrep_on") == "ON" and int(values.get("wsrep_sync_wait", 0)) % 2 < 1:
        yield Doubt(
            Kind.REPLICAS,
            "Reads on this Galera node do not wait for commits of other nodes, so a"
            " change that a command has confirmed may not be visible here yet.",
            "Set wsrep_sync_wait = 1 in the server's configuration.",
        )


# -- SQLite ---------------------------------------------------------------------------

_SQLITE: Final = """\
Put this into DATABASES["{using}"]:
    "OPTIONS": {{
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    }},"""
_SYNCHRONOUS: Final = ("OFF", "NORMAL", "FULL", "EXTRA")


def _of_sqlite(using: str) -> Iterator[Doubt]:
    connection: Any = connections[using]
    with connection.cursor() as cursor:
        name = cursor.execute("PRAGMA database_list").fetchone()[2]
        journal = cursor.execute("PRAGMA journal_mode").fetchone()[0]
        synchronous = cursor.execute("PRAGMA synchronous").fetchone()[0]
    # A database in memory is for tests, and keeps nothing anyway.
    if name:
        yield from on_sqlite(using, journal, _SYNCHRONOUS[synchronous])
        yield from _on_one_host(name)


def on_sqlite(using: str, journal: str, synchronous: str) -> Iterator[Doubt]:
    """Judge the two PRAGMAs of the file of a connection."""
    remedy = _SQLITE.format(using=using)
    if journal in ("memory", "off"):
        yield _durability_doubt(
            f"journal_mode = {journal}",
            f"{LOST} The database itself may be beyond repair.",
            remedy,
        )
    elif journal != "wal":
        yield Doubt(
            Kind.LOCKS,
            f"SQLite has journal_mode = {journal}, so readers block writers, and"
            " requests that wait too long are refused.",
            remedy,
        )
    if synchronous in ("OFF", "NORMAL"):
        yield _durability_doubt(f"synchronous = {synchronous}", LOST, remedy)


def _on_one_host(name: str) -> Iterator[Doubt]:
    mounts = MOUNTS.read_text(errors="replace") if MOUNTS.exists() else ""
    kind = file_system(os.path.realpath(name), mounts)
    if kind.startswith(NETWORKS):
        yield _durability_doubt(
            f"its file on a network ({kind})",
            "SQLite's locks do not work there, so the file gets corrupted.",
            "Keep the file on a local disk of the one machine that serves, or use"
            " PostgreSQL, MariaDB or MySQL.",
        )


def file_system(path: str, mounts: str) -> str:
    """Return the type of a path's file system by /proc/self/mounts, "" for none."""
    mount_points = [line.split(" ")[1:3] for line in mounts.splitlines()]
    inside = [
        (point, kind)
        for point, kind in mount_points
        if f"{path}/".startswith(f"{point.rstrip('/')}/")
    ]
    # If two are mounted at one point, the later one covers the earlier.
    return max(reversed(inside), key=lambda each: len(each[0]))[1] if inside else ""


def _values_by_name(using: str, statement: str) -> dict[str, str]:
    with connections[using].cursor() as cursor:
        cursor.execute(statement, [])
        return {name: str(value) for name, value in cursor.fetchall()}


_DOUBTS_BY_VENDOR: Final[Mapping[str, Callable[[str], Iterator[Doubt]]]] = {
    "postgresql": _of_postgresql,
    "mysql": _of_mysql,
    "sqlite": _of_sqlite,
}


# -- connections ----------------------------------------------------------------------


def most_connections(using: str) -> int | None:
    """Return how many the database lets the site's user have; None for no limit."""
    vendor = connections[using].vendor
    if vendor == "postgresql":
        texts = _values_by_name(using, _LIMITS)
        values = {key: int(each) for key, each in texts.items()}
        user_limits = [values.pop("role"), values.pop("database")]
        # The other values are connections that are reserved for superusers and roles.
        total = values.pop("max_connections") - sum(values.values())
        # -1 stands for no limit.
        return min([total, *(each for each in user_limits if each >= 0)])
    if vendor == "mysql":
        limits = map(int, _values_by_name(using, _MYSQL_LIMITS).values())
        # 0 stands for no limit.
        return min(limit for limit in limits if limit)
    return None


_LIMITS: Final = """
    SELECT name, setting FROM pg_settings WHERE name IN
    ('max_connections', 'superuser_reserved_connections', 'reserved_connections')
    UNION ALL
    SELECT 'role', (CASE WHEN rolsuper THEN -1 ELSE rolconnlimit END)::text
    FROM pg_roles WHERE rolname = session_user
    UNION ALL
    SELECT 'database', (CASE WHEN rolsuper THEN -1 ELSE datconnlimit END)::text
    FROM pg_database, pg_roles
    WHERE datname = current_database() AND rolname = session_user
"""
"""The last two limits, of the role and of the database, do not bind a superuser."""
_MYSQL_LIMITS: Final = """
    SHOW VARIABLES WHERE Variable_name IN ('max_connections', 'max_user_connections')
"""
