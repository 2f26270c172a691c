"""Which SQL statements end a transaction, as their first words say.

A text may hold several, where the driver takes them.  What no text shows is left to
the savepoint (`trial_transaction`): a procedure that commits, or the driver's method.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_ENDING: Final = (
    r"COMMIT|END|BEGIN|START|PREPARE|ABORT"
    r"|ROLLBACK(?!\s+(?:(?:WORK|TRANSACTION)\s+)?TO\b)"
)
_IMPLICIT: Final = (
    r"ALTER|CREATE(?!\s+(?:OR\s+REPLACE\s+)?TEMPORARY\b)|DROP(?!\s+TEMPORARY\b)"
    r"|RENAME|TRUNCATE|INSTALL|UNINSTALL|IMPORT|GRANT|REVOKE|SET\s+PASSWORD"
    r"|SET\b(?=[^;]*\bautocommit\b)|EXECUTE\s+IMMEDIATE|LOCK|UNLOCK|CACHE|CHECK|FLUSH"
    r"|LOAD\s+INDEX|OPTIMIZE|REPAIR|RESET|STOP|CHANGE"
    r"|ANALYZE\s+(?:(?:NO_WRITE_TO_BINLOG|LOCAL)\s+)?TABLE"
)
"""What MySQL and MariaDB commit before they do it, and what runs such a text."""
_WITHOUT_DDL: Final = re.compile(rf"(?:{_ENDING})\b", re.IGNORECASE)
_WITH_DDL: Final = re.compile(rf"(?:{_ENDING}|{_IMPLICIT})\b", re.IGNORECASE)
_READING: Final = re.compile(
    r"(?:SELECT|WITH|VALUES|EXPLAIN|PRAGMA|SHOW|SAVEPOINT|RELEASE|ROLLBACK)\b",
    re.IGNORECASE,
)
_UNDOES_DDL: Final = frozenset({"sqlite", "postgresql"})
"""Databases, by Django's vendor, on which DDL is part of a transaction."""

_BLANK: Final = re.compile(r"[\s;(]+|--[^\n]*")
_MYSQL_BLANK: Final = re.compile(r"[\s;(]+|--[^\n]*|#[^\n]*|/\*M?!\d*|\*/")
"""MySQL executes what stands in `/*! */`."""
_MARK: Final = re.compile(r"/\*|\*/")
_QUOTED: Final = (
    r'"(?:[^"]|"")*"|`[^`]*`|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$|--[^\n]*|/\*(?!M?!).*?\*/'
)
_APART: Final = re.compile(rf"'(?:[^']|'')*'|{_QUOTED}|(?P<end>;)", re.DOTALL)
_MYSQL_APART: Final = re.compile(
    rf"'(?:[^'\\]|\\.|'')*'|{_QUOTED}|#[^\n]*|(?P<end>;)", re.DOTALL
)


def committing_words(sql: str, vendor: str) -> str:
    """Return with which words a text would end a transaction, or "" if it would not.

    `vendor` is that of Django's connection.  On others than SQLite and PostgreSQL the
    statements count that MySQL commits before.
    """
    pattern = _WITHOUT_DDL if vendor in _UNDOES_DDL else _WITH_DDL
    for statement in _statements(sql, vendor):
        if match := pattern.match(_without_comments(statement, vendor)):
            return " ".join(match[0].upper().split())
    return ""


def may_write(sql: str, vendor: str) -> bool:
    """Whether a text may change rows, as its first word says."""
    return not _READING.match(_without_comments(sql, vendor))


def _statements(sql: str, vendor: str) -> Iterator[str]:
    begin = 0
    if ";" in sql:
        apart = _MYSQL_APART if vendor == "mysql" else _APART
        for match in apart.finditer(sql):
            if match["end"]:
                yield sql[begin : match.start()]
                begin = match.end()
    yield sql[begin:]


def _without_comments(sql: str, vendor: str) -> str:
    """Return a text from its first word on."""
    blank = _MYSQL_BLANK if vendor == "mysql" else _BLANK
    position, before = 0, -1
    while position != before:
        before = position
        if match := blank.match(sql, position):
            position = match.end()
        elif sql.startswith("/*", position):
            position = _comment_end(sql, position, nests=vendor == "postgresql")
    return sql[position:]


def _comment_end(sql: str, begin: int, *, nests: bool) -> int:
    depth = 0
    for match in _MARK.finditer(sql, begin):
        depth += 1 if match[0] == "/*" and (nests or not depth) else 0
        depth -= match[0] == "*/"
        if not depth:
            return match.end()
    return len(sql)
