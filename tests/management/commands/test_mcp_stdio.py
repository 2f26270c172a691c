"""For whom `manage.py mcp_stdio` serves, and what it says to the others."""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model

from mcp_app.interface.principal import RESERVED_KINDS
from mcp_app.management.options import principal_of
from tests.drill.piped import COMMAND, database, environment, piped
from tests.drill.running import ROOT
from tests.transports.stdio.test_connection import called
from tests.transports.stdio.test_server import HELLO, READY

pytestmark = pytest.mark.programs

NOT_SERVED = 2
USER = (
    "INSERT INTO auth_user (username, is_active, is_superuser, is_staff, password,"
    " first_name, last_name, email, date_joined)"
    " VALUES ('{}', {}, 1, 1, '', '', '', '', CURRENT_TIMESTAMP)"
)
ACCEPTED = {"action": "accept", "content": {"answer": "this one"}}


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """Return a database in which the server is not public, and users are."""
    file = database(tmp_path)
    _execute(file, "UPDATE mcp_app_server SET access = ''")
    for name, active in (("eve", 1), ("gone", 0)):
        _execute(file, USER.format(name, active))
    return file


def _execute(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


def ended(file: Path, *arguments: str, **env: str) -> tuple[int, bytes, str]:
    found = subprocess.run(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env=environment(file, **env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return found.returncode, found.stdout, found.stderr.decode()


def test_who_is_not_served_is_told_in_one_line(private: Path) -> None:
    for arguments, named in (
        ((), "MCP_USER"),
        (("--user", "nobody"), "nobody"),
        (("--user", "gone"), "gone"),
        (("--user", "eve", "--server", "nowhere"), "nowhere"),
    ):
        status, written, said = ended(private, *arguments)
        assert (status, written) == (NOT_SERVED, b""), said
        assert named in said
        assert said.count("\n") == 1
    with closing(sqlite3.connect(private)) as connection:
        workers = connection.execute("SELECT count(*) FROM mcp_app_worker")
        assert workers.fetchone() == (0,), "Nobody waits for a process that is gone."


@pytest.mark.django_db
def test_theprincipal_of() -> None:
    user = get_user_model()._default_manager.create_user("eve")
    assert principal_of("eve").key.split("\x1f") == ["stdio", str(user.pk), "stdio"]
    assert principal_of("eve").kind in RESERVED_KINDS


def test_a_user_is_who_calls(private: Path, tmp_path: Path) -> None:
    with piped(tmp_path, file=private, MCP_USER="eve") as server:
        server.send(HELLO, READY, called("drill_whoami", 1))
        server.close_input()
        said = server.answer(1)["result"]["structuredContent"]
        assert (said["user"], said["session"]) == ("eve", True)
        assert server.wait() == 0


def test_a_user_who_is_not_active_any_more(private: Path, tmp_path: Path) -> None:
    program = (
        "from django.contrib.auth import get_user_model as users;user ="
        " users().objects.get(username='eve');user.is_active = False;"
        # Whoever commits a transaction goes on when it is true everywhere.
        "from django.db import transaction; transaction.atomic(user.save)()"
    )
    with piped(tmp_path, "--user", "eve", file=private) as server:
        server.send(HELLO, READY, called("drill_ask", 1, question="Which?"))
        while (asked := server.next()).get("method") != "elicitation/create":
            continue
        subprocess.run(
            [*COMMAND[:-1], "shell", "-v0", "-c", program],
            cwd=ROOT,
            env=environment(private),
            check=True,
        )
        server.send(called("drill_whoami", 2))
        assert "no longer active" in server.answer(2)["error"]["message"]
        # Nor is an answer taken from whom a request would not be.
        server.send({"jsonrpc": "2.0", "id": asked["id"], "result": ACCEPTED})
        server.close_input()
        assert server.rest() == []
        assert server.wait() == 0


def test_a_database_that_is_not_there(tmp_path: Path) -> None:
    status, written, said = ended(tmp_path / "no" / "db.sqlite3")
    assert (status, written) == (1, b"")
    assert "CommandError: The database cannot be used" in said
