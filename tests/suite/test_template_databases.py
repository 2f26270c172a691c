"""Databases that are made once: by whom, of what, and what is left if that fails."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from typing import Final

import pytest

from tests.suite import template_databases
from tests.suite.stores import Files, Store
from tests.suite.template_databases import (
    MADE_OF,
    ROOT,
    ROWS,
    TABLES,
    is_outdated,
    template,
    temporary,
)

WORKS: Final = """
import os, sqlite3
with sqlite3.connect(os.environ["DATABASE_URL"].removeprefix("sqlite:///")) as there:
    there.execute("CREATE TABLE made (id int)")
with open({log!r}, "a") as log:
    log.write("made ")
"""
FAILS: Final = "raise SystemExit('This is what the test wants.')"


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def other_digests() -> Iterator[None]:
    template_databases._digest.cache_clear()
    yield
    template_databases._digest.cache_clear()


def counted(store: Store, name: str) -> dict[str, int]:
    return {table: len(list(rows)) for table, rows in store.rows(name)}


def test_a_copy_has_the_tables_and_another_one_the_rows(store: Store) -> None:
    with temporary(store, TABLES) as migrated, temporary(store, ROWS) as filled:
        first, second = counted(store, migrated), counted(store, filled)
    assert first.keys() == second.keys()
    assert first["mcp_app_server"] == second["mcp_app_server"] == 1
    assert first["mcp_app_tool"] == 0 < second["mcp_app_tool"]
    assert first["django_migrations"] == second["django_migrations"] > 0
    assert {migrated, filled}.isdisjoint(store.names())


def test_a_new_one_is_empty(store: Store) -> None:
    with temporary(store) as name:
        assert counted(store, name) == {}
    assert name not in store.names()


def test_several_copy_at_once(store: Store) -> None:
    def copied(_: int) -> dict[str, int]:
        with temporary(store, ROWS) as name:
            return counted(store, name)

    with ThreadPoolExecutor(3) as pool:
        first, *others = pool.map(copied, range(3))
    assert others == [first, first]
    assert first["mcp_app_tool"] > 0


@pytest.mark.usefixtures("other_digests")
def test_who_comes_at_the_same_time_waits_for_the_first(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setitem(template_databases.PROGRAMS, TABLES, WORKS.format(log=str(log)))
    with ThreadPoolExecutor(3) as pool:
        (name,) = set(pool.map(template, [files] * 3, [TABLES] * 3))
    assert log.read_text() == "made "
    assert counted(files, name) == {"made": 0}


@pytest.mark.usefixtures("other_digests")
def test_what_could_not_be_made_is_no_template(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(template_databases.PROGRAMS, TABLES, FAILS)
    with pytest.raises(subprocess.CalledProcessError):
        template(store, TABLES)
    assert not store.holds(template_databases._name(TABLES))


@pytest.mark.usefixtures("other_digests")
def test_what_makes_others_has_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template_databases, "ROOT", tmp_path)
    monkeypatch.setitem(MADE_OF, TABLES, ("folder", "module.py"))
    (tmp_path / "folder/deeper").mkdir(parents=True)
    (tmp_path / "module.py").touch()

    def digest() -> str:
        template_databases._digest.cache_clear()
        return template_databases._digest(TABLES)

    digests = [digest()]
    for path in ("module.py", "folder/first.py", "folder/deeper/second.py"):
        (tmp_path / path).write_text("changed = True\n")
        digests.append(digest())
    for path in ("folder/second.txt", "folder/test_first.py"):
        (tmp_path / path).write_text("It has no part in it.")
    assert digest() == digests[-1]
    assert len(set(digests)) == len(digests)
    monkeypatch.setattr("django.get_version", lambda: "another")
    assert digest() not in digests


@pytest.mark.usefixtures("other_digests")
def test_what_changes_meanwhile_is_no_template(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be neither of the one nor of the other."""
    monkeypatch.setattr(template_databases, "ROOT", tmp_path)
    monkeypatch.setitem(MADE_OF, TABLES, ("module.py",))
    monkeypatch.setitem(
        template_databases.PROGRAMS, TABLES, "open('module.py', 'w').write('#')"
    )
    (tmp_path / "module.py").touch()
    with pytest.raises(RuntimeError, match="Sources changed"):
        template(files, TABLES)
    assert not list(tmp_path.glob("*.sqlite3"))


def test_what_migrations_import_makes_the_tables() -> None:
    for path in (ROOT / "mcp_app/migrations").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for name in imported(node):
                if name.startswith("mcp_app."):
                    place = f"{name.replace('.', '/')}.py"
                    assert place.startswith(MADE_OF[TABLES]), f"{path} imports {name}"


def imported(node: ast.AST) -> list[str]:
    """Return the modules, of which some may be names within a module."""
    match node:
        case ast.Import():
            return [each.name for each in node.names]
        case ast.ImportFrom(module="mcp_app" | "mcp_app.protocol"):
            return [f"{node.module}.{each.name}" for each in node.names]
        case ast.ImportFrom():
            return [str(node.module)]
    return []


def test_it_is_kept_as_long_as_a_run_may_copy_it(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"mcptemplate_{TABLES}_{16 * 'f'}_{(period := template_databases._period())}"
    for later, outdated in ((0, False), (1, False), (2, True)):
        monkeypatch.setattr(template_databases, "_period", lambda at=period + later: at)
        assert is_outdated(name) is outdated
    assert not is_outdated("postgres")


def test_what_was_written_to_a_file_is_in_its_copies() -> None:
    """Its log is gone when the program has ended that made it."""
    files = Files()
    with temporary(files, TABLES) as name, closing(connect(files.setting(name))) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("SELECT count(*) FROM django_migrations").fetchone()[0] > 0
