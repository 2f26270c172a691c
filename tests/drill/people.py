"""Somebody who may do everything in the admin of a fixture server."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from django.contrib.auth.hashers import PBKDF2PasswordHasher

NAME: Final = "ana"
PASSWORD: Final = "a-Long-enough-1"
COLUMNS: Final = (
    "password, is_superuser, username, first_name, last_name, email, is_staff,"
    " is_active, date_joined"
)


def add_superuser(database: Path) -> None:
    password = PBKDF2PasswordHasher().encode(PASSWORD, "saltsaltsaltsaltsalt12")
    values = (password, 1, NAME, "", "", "", 1, 1, "2026-01-01")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(
            f"INSERT INTO auth_user ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - a constant
            values,
        )


def page_of_tool(database: Path, name: str, model: str = "tool") -> str:
    statement = f"SELECT id FROM mcp_app_{model} WHERE name = ?"  # noqa: S608 - a constant
    with closing(sqlite3.connect(database)) as connection:
        [key] = connection.execute(statement, [name]).fetchone()
    return f"/admin/mcp_app/{model}/{key}/try/"
