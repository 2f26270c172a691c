"""Which texts would end a transaction, whatever stands around the words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from mcp_app.workbench.trying.trial_transaction import committing_words, may_write


def by_text(texts: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
    """Return the words that a text commits with, by the text."""
    return {text: words for words, those in texts.items() for text in those}


ALL: Final = ("sqlite", "postgresql", "mysql", "oracle")
ANYWHERE: Final = by_text(
    {
        "COMMIT": [
            *("COMMIT", "commit work", " \n\t( commit )", "-- a\nCOMMIT"),
            *("/* a */ /* b ; */COMMIT", ";;COMMIT"),
            *("INSERT INTO a VALUES (1); COMMIT", "SELECT ''; COMMIT"),
        ],
        "": [
            *("/* never closed COMMIT", "ROLLBACK TO a", "rollback to savepoint a"),
            *("ROLLBACK WORK TO a", "ROLLBACK TRANSACTION TO SAVEPOINT a"),
            *("SAVEPOINT a", "RELEASE SAVEPOINT a", "SELECT 1", "", "SELECT 'COMMIT'"),
            *("COMMITMENT", "ENDING", "INSERT INTO a VALUES ('; COMMIT')"),
            *("INSERT INTO a VALUES ('it''s; COMMIT')", 'SELECT 1 AS "; COMMIT"'),
            *("SELECT 1 -- ; COMMIT", "SELECT 1 /* ; COMMIT */"),
            "SELECT $a$ ; COMMIT $a$",
        ],
        "END": ["END", "END TRANSACTION"],
        "BEGIN": ["BEGIN IMMEDIATE"],
        "START": ["START TRANSACTION"],
        "PREPARE": ["PREPARE TRANSACTION 'a'"],
        "ABORT": ["ABORT"],
        "ROLLBACK": [
            *("ROLLBACK", "ROLLBACK WORK"),
            "INSERT INTO a VALUES (1); -- ; \n /* ; */ rollback",
        ],
    }
)
"""What begins with a word that commits on each database, and what does not."""
IMPLICIT: Final = {
    "CREATE TABLE a (b int)": "CREATE",
    "CREATE TEMPORARY TABLE a (b int)": "",
    "CREATE OR REPLACE TEMPORARY TABLE a (b int)": "",
    "CREATE OR REPLACE VIEW a AS SELECT 1": "CREATE",
    "DROP TABLE a": "DROP",
    "DROP TEMPORARY TABLE a": "",
    "alter table a add b int": "ALTER",
    "TRUNCATE a": "TRUNCATE",
    "RENAME TABLE a TO b": "RENAME",
    "GRANT ALL ON a TO b": "GRANT",
    "REVOKE ALL ON a FROM b": "REVOKE",
    "LOCK TABLES a READ": "LOCK",
    "UNLOCK TABLES": "UNLOCK",
    "ANALYZE TABLE a": "ANALYZE TABLE",
    "ANALYZE LOCAL  TABLE a": "ANALYZE LOCAL TABLE",
    "ANALYZE SELECT 1": "",
    "OPTIMIZE TABLE a": "OPTIMIZE",
    "CHECK TABLE a": "CHECK",
    "CHECKSUM TABLE a": "",
    "LOAD INDEX INTO CACHE a": "LOAD INDEX",
    "LOAD DATA INFILE 'a' INTO TABLE b": "",
    "FLUSH TABLES": "FLUSH",
    "SET autocommit = 1": "SET",
    "SET SESSION sql_mode = '', @@session.autocommit=1": "SET",
    "SET PASSWORD = 'a'": "SET PASSWORD",
    "SET NAMES utf8mb4": "",
    "SET STATEMENT max_statement_time=1 FOR SELECT 1": "",
    "EXECUTE IMMEDIATE 'COMMIT'": "EXECUTE IMMEDIATE",
    "EXECUTE a": "",
    "REPLACE INTO a VALUES (1)": "",
}
"""What MySQL and MariaDB commit before."""
MYSQL: Final = {
    "/*! COMMIT */": "COMMIT",
    "/*!50000COMMIT*/": "COMMIT",
    "/*M!100100 COMMIT */": "COMMIT",
    "/*!40000 SELECT 1 */; COMMIT": "COMMIT",
    "# a\nCOMMIT": "COMMIT",
    "SELECT 1 # ; COMMIT": "",
    r"INSERT INTO a VALUES ('\'; COMMIT')": "",
    "SELECT `; COMMIT` FROM a": "",
}
POSTGRESQL: Final = {
    "/* /* */ */ COMMIT": "COMMIT",
    "/* a /* b */ COMMIT */ SELECT 1": "",
    r"SELECT '\'; COMMIT": "COMMIT",
    "SELECT $$ ; COMMIT $$; END": "END",
}


@pytest.mark.parametrize("vendor", ALL)
def test_words_that_commit_anywhere(vendor: str) -> None:
    assert {sql: committing_words(sql, vendor) for sql in ANYWHERE} == ANYWHERE


@pytest.mark.parametrize("vendor", ["mysql", "oracle"])
def test_what_commits_by_itself_where_ddl_cannot_be_undone(vendor: str) -> None:
    assert {sql: committing_words(sql, vendor) for sql in IMPLICIT} == IMPLICIT


@pytest.mark.parametrize("vendor", ["sqlite", "postgresql"])
def test_elsewhere_ddl_is_undone(vendor: str) -> None:
    assert {committing_words(sql, vendor) for sql in IMPLICIT} == {""}


@pytest.mark.parametrize(
    ("vendor", "texts"), [("mysql", MYSQL), ("postgresql", POSTGRESQL)]
)
def test_each_database_has_its_comments_and_quotes(
    vendor: str, texts: dict[str, str]
) -> None:
    assert {sql: committing_words(sql, vendor) for sql in texts} == texts


def test_a_long_text_is_read_once() -> None:
    rows = "INSERT INTO a VALUES (0)" + ", (%s, ';', '; COMMIT')" * 20_000
    assert committing_words(rows, "mysql") == ""
    assert committing_words(f"{rows}; END", "mysql") == "END"


def test_what_only_reads() -> None:
    reading = ["SELECT 1", "/* a */ with a as (select 1) select * from a", "SHOW x"]
    writing = ["INSERT INTO a VALUES (1)", "-- SELECT\nUPDATE a SET b = 1", ""]
    assert [may_write(each, "sqlite") for each in reading] == [False] * 3
    assert [may_write(each, "sqlite") for each in writing] == [True] * 3
