from __future__ import annotations

import psycopg

from benchmarks.rows import counted, more
from tests.drill.databases import postgresql_database


def test_the_tables_of_the_app_are_counted() -> None:
    with postgresql_database() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE mcp_app_once (id int)")
            connection.execute("CREATE TABLE mcp_app_event (id int)")
            connection.execute("CREATE TABLE mcpxapp_more (id int)")
            connection.execute("INSERT INTO mcp_app_event VALUES (1), (2)")
            connection.execute("INSERT INTO mcpxapp_more VALUES (1)")
        assert counted(url) == {"event": 2, "once": 0}


def test_what_there_is_more_of() -> None:
    before = {"event": 2, "once": 3, "topic": 1}
    assert more({"event": 5, "once": 3, "topic": 0, "stream": 1}, before) == {
        "event": 3,
        "stream": 1,
    }
