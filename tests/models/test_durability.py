"""What is judged of a database's settings; SQLite itself is asked, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from django.db import connections

from mcp_app.models import durability
from mcp_app.models.durability import Kind, doubts, file_system

Judge = Callable[[Mapping[str, str]], Iterator[durability.Doubt]]

POSTGRESQL: Final = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "transaction_isolation": "read committed",
}
MYSQL: Final = {
    "innodb_flush_log_at_trx_commit": "1",
    "innodb_doublewrite": "ON",
    "log_bin": "OFF",
    "sync_binlog": "0",
    "transaction_isolation": "READ-COMMITTED",
}


def kinds(judge: Judge, values: Mapping[str, str], **others: str) -> list[Kind]:
    return [each.kind for each in judge({**values, **others})]


@pytest.mark.parametrize(
    ("others", "found"),
    [
        ({}, []),
        ({"synchronous_commit": "remote_apply"}, []),
        ({"synchronous_commit": "off"}, [Kind.DURABILITY]),
        ({"fsync": "off", "full_page_writes": "off"}, [Kind.DURABILITY] * 2),
        ({"transaction_isolation": "repeatable read"}, [Kind.ISOLATION]),
    ],
)
def test_postgresql(others: dict[str, str], found: list[Kind]) -> None:
    assert kinds(durability.on_postgresql, POSTGRESQL, **others) == found


@pytest.mark.parametrize(
    ("others", "found"),
    [
        ({}, []),
        ({"innodb_flush_log_at_trx_commit": "2"}, [Kind.DURABILITY]),
        ({"innodb_doublewrite": "OFF"}, [Kind.DURABILITY]),
        ({"log_bin": "ON"}, [Kind.DURABILITY]),
        ({"log_bin": "ON", "sync_binlog": "1"}, []),
        ({"transaction_isolation": "SERIALIZABLE"}, [Kind.ISOLATION]),
        ({"wsrep_on": "ON", "wsrep_sync_wait": "0"}, [Kind.REPLICAS]),
        ({"wsrep_on": "ON", "wsrep_sync_wait": "6"}, [Kind.REPLICAS]),
        ({"wsrep_on": "ON", "wsrep_sync_wait": "7"}, []),
    ],
)
def test_mysql(others: dict[str, str], found: list[Kind]) -> None:
    assert kinds(durability.on_mysql, MYSQL, **others) == found
    # MariaDB calls the isolation otherwise.
    values = {"tx_isolation": "REPEATABLE-READ"}
    assert kinds(durability.on_mysql, values) == [Kind.ISOLATION]
    assert kinds(durability.on_mysql, {}) == []


def test_what_is_said_names_the_value_and_how_to_set_it() -> None:
    (doubt,) = durability.on_postgresql({**POSTGRESQL, "fsync": "off"})
    assert doubt.sentence.startswith(
        "The database has fsync = off: if its machine crashes"
    )
    assert doubt.remedy == "Set fsync = on in postgresql.conf."


@pytest.fixture
def alias(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Make a file of SQLite known as "file", with these PRAGMAs."""

    def made(*pragmas: str, name: Path | str = tmp_path / "db.sqlite3") -> str:
        connections.settings["file"] = {
            **connections.settings["default"],
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": name,
            "OPTIONS": {
                "init_command": " ".join(f"PRAGMA {each};" for each in pragmas)
            },
        }
        return "file"

    yield made
    connections["file"].close()
    del connections["file"]
    del connections.settings["file"]


@pytest.mark.parametrize(
    ("pragmas", "found"),
    [
        (["journal_mode=WAL", "synchronous=FULL"], []),
        (["journal_mode=WAL", "synchronous=EXTRA"], []),
        (["journal_mode=WAL", "synchronous=NORMAL"], [Kind.DURABILITY]),
        (["journal_mode=MEMORY", "synchronous=FULL"], [Kind.DURABILITY]),
        (["journal_mode=OFF", "synchronous=OFF"], [Kind.DURABILITY] * 2),
        ([], [Kind.LOCKS]),
    ],
)
def test_a_file_of_sqlite(
    alias: Callable[..., str],
    pragmas: list[str],
    found: list[Kind],
    django_db_blocker: Any,
) -> None:
    with django_db_blocker.unblock():
        assert [each.kind for each in doubts(alias(*pragmas))] == found


def test_a_file_on_a_network(
    alias: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    django_db_blocker: Any,
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nhost:/x {tmp_path} nfs4 rw 0 0\n")
    monkeypatch.setattr(durability, "MOUNTS", mounts)
    using = alias("journal_mode=WAL", "synchronous=FULL")
    with django_db_blocker.unblock():
        (doubt,) = doubts(using)
        mounts.unlink()
        assert doubts(using) == []
    assert doubt.sentence.startswith("The database has its file on a network (nfs4): ")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/db.sqlite3", "ext4"),
        ("/srv/share/db.sqlite3", "cifs"),
        ("/srv/shared/db.sqlite3", "ext4"),
        ("/mnt/db.sqlite3", "nfs"),
    ],
)
def test_the_place_of_a_file(path: str, kind: str) -> None:
    mounts = (
        "/dev/sda / ext4 rw 0 0\n//host/x /srv/share cifs rw 0 0\n"
        "/dev/sdb /mnt ext4 rw 0 0\nhost:/y /mnt nfs rw 0 0\n"
    )
    assert file_system(path, mounts) == kind
    assert file_system(path, "") == ""


def test_a_database_in_memory_is_for_tests(
    alias: Callable[..., str], django_db_blocker: Any
) -> None:
    using = alias("synchronous=OFF", name=":memory:")
    with django_db_blocker.unblock():
        assert doubts(using) == []
        assert durability.most_connections(using) is None
