"""Rows of a site's database, read by the test itself.

A program of the site needs a second of a processor before it can read the first one.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg
import pytest

PATIENCE_S: Final = 60
LOOK_S: Final = 0.05


def rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    with (
        closing(_connected(url)) as connection,
        closing(connection.cursor()) as cursor,
    ):
        cursor.execute(statement)
        return list(cursor.fetchall())


def one_number(url: str, statement: str) -> int:
    ((found,),) = rows(url, statement)
    return int(found)


def until_number(
    url: str, statement: str, enough: Callable[[int], bool], within: float = PATIENCE_S
) -> int:
    end = time.monotonic() + within
    while not enough(found := one_number(url, statement)):
        assert time.monotonic() < end, (statement, found)
        time.sleep(LOOK_S)
    return found


def _connected(url: str) -> Any:
    where = urlsplit(url)
    if where.scheme == "sqlite":
        return sqlite3.connect(where.path[1:], timeout=PATIENCE_S)
    if where.scheme == "mysql":
        driver: Any = pytest.importorskip("MySQLdb")
        return driver.connect(
            host=where.hostname or "127.0.0.1",
            port=where.port or 3306,
            user=where.username or "root",
            password=where.password or "",
            database=where.path[1:],
        )
    return psycopg.connect(url)
