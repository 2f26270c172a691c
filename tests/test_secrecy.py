"""A secret that is written anywhere is found at the end of a run."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, Final

import pytest
from django.contrib.auth.models import User

from tests import secrecy
from tests.drill.databases import prepared_file
from tests.drill.running import ROOT
from tests.secrecy import VARIABLE, Watch, counted, found, main

SECRET: Final = "A" * 42 + "b"
LIKE_ONE: Final = "C" * 43
PROGRAM: Final = """
import logging, sys
import django
django.setup()
from django.contrib.auth.models import User
from mcp_app.models import AccessToken
user = User.objects.create_user("ana")
token = AccessToken.objects.make(user=user, name="laptop", may="read")[1]
said = token if "whole" in sys.argv else token[:10]
logging.getLogger("mcp_app.quiet").debug("Somebody showed %s", str(said))
"""


def test_a_process_tells_what_it_wrote(tmp_path: Path) -> None:
    """At any level, whether it is shown or not."""
    for argument, places in (("part", []), ("whole", ["log mcp_app.quiet"])):
        folder = tmp_path / argument
        database = shutil.copy(prepared_file(), tmp_path / f"{argument}.sqlite3")
        environment = {
            **os.environ,
            "DATABASE_URL": f"sqlite:///{database}",
            "DJANGO_SETTINGS_MODULE": "tests.drill.settings",
            VARIABLE: str(folder),
        }
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM, argument],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert (ended.stdout, ended.stderr) == ("", "")
        assert [each.partition(":")[0] for each in found(folder)] == places
        assert counted(folder)["log"] >= 1


@pytest.mark.django_db
def test_looking_asks_nothing_that_a_test_counts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    django_assert_num_queries: Callable[[int], AbstractContextManager[Any]],
) -> None:
    """Though what is logged fetches rows where it is shown."""
    for name in ("handle", "isEnabledFor"):
        monkeypatch.setattr(logging.Logger, name, getattr(logging.Logger, name))
    own = Watch(tmp_path)
    secrecy._look_at_logs(own)
    User.objects.create_user("ana")
    own.knows("<User: ana>")
    own._fixed.add("<User: ana>")
    with django_assert_num_queries(0):
        logging.getLogger("mcp_app.quiet").debug("There are %s", User.objects.all())
    assert found(tmp_path) == ["log mcp_app.quiet: <User: ana>"]


@pytest.mark.parametrize("form", [SECRET, f"mcp_{SECRET}", f"{SECRET}-more"])
def test_what_one_wrote_and_another_made(tmp_path: Path, form: str) -> None:
    Watch(tmp_path).knows(SECRET)
    writer = Watch(tmp_path)
    writer.looks_at("row", "mcp_app_call", f"before {form} after {LIKE_ONE}")
    assert found(tmp_path) == [f"row mcp_app_call: {form}"]


def test_the_site_s_key_and_what_is_derived_from_it(tmp_path: Path) -> None:
    own = Watch(tmp_path)
    own.knows_key("a key")
    own.looks_at("error", "500", "The value of SECRET_KEY is 'a key'.")
    assert found(tmp_path) == ["error 500: a key"]


def test_rows_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Watch(tmp_path)
    own.knows(SECRET)
    monkeypatch.setattr(secrecy, "_watch", own)
    database = tmp_path / "db.sqlite3"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE kept (text, bytes)")
        connection.execute(
            "INSERT INTO kept VALUES (?, ?)", ["", f"a {SECRET}".encode()]
        )
        connection.commit()
    secrecy.look_at_file(database)
    secrecy.look_at_file(tmp_path / "none.sqlite3")
    secrecy.look_at_answer(200, {}, SECRET.encode())
    assert found(tmp_path) == [f"row kept: {SECRET}"]


def test_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = Watch(tmp_path)
    assert main(tmp_path) == 1
    assert "Nothing was looked at: row." in capsys.readouterr().out
    own.knows(SECRET)
    for kind in ("log", "row", "error"):
        own.looks_at(kind, "somewhere", LIKE_ONE)
    own._count()
    assert main(tmp_path) == 0
    said = "1 secrets, 1 records of logs, 1 rows, 1 errors: 0 found."
    assert capsys.readouterr().out.strip() == said
    own.looks_at("log", "somewhere", SECRET)
    assert main(tmp_path) == 1
    assert f"log somewhere: {SECRET}" in capsys.readouterr().out
