"""What a killed run leaves is removed by the next one, and nothing else is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from secrets import token_hex
from typing import Final

import pytest

from tests.drill.running import ROOT
from tests.suite import sweeping, template_databases
from tests.suite.commands import inherited
from tests.suite.owners import OWNED, SHARED, owned_name
from tests.suite.stores import Files, PostgreSQL, Store
from tests.suite.template_databases import TABLES, temporary

NOBODY: Final = PostgreSQL("postgres://postgres@127.0.0.1:1")
CONFTEST: Final = 'pytest_plugins = ("tests.drill.databases",)\n'
WAITING: Final = """
import time
import pytest
from django.db import connection

@pytest.mark.django_db
def test_it():
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    print(f"It uses {connection.settings_dict['NAME']}", flush=True)
    time.sleep(600)
"""


def of_another_start(name: str) -> str:
    """Return the name as a process has it that had our number before us."""
    owned = OWNED.match(name)
    assert owned is not None
    begin, end = owned.span("start")
    return f"{name[:begin]}{int(owned['start']) + 1}{name[end:]}"


def test_databases_of_who_is_gone_are_dropped(store: Store) -> None:
    own, another = owned_name(), owned_name().replace("mcp_", "mcp_00000000_", 1)
    # Another checkout tries the same at the same time.
    content = token_hex(8)
    current = f"mcptemplate_tables_{content}_{template_databases._period()}"
    stay = {own, another, current}
    outdated = f"mcptemplate_tables_{content}_{template_databases._period() - 2}"
    left = of_another_start(own)
    go = {left, f"test_{left}_gw0", outdated}
    try:
        for name in stay | go:
            make(store, name)
        sweeping.sweep()
        assert stay < set(store.names())
        assert go.isdisjoint(store.names())
    finally:
        for name in stay | go:
            store.drop(name)


def make(store: Store, name: str) -> None:
    if isinstance(store, Files):
        for beside in ("", "-wal", "-shm"):
            Path(f"{store.setting(name)}{beside}").touch()
    else:
        store.create(name)


def test_a_server_that_cannot_be_reached_has_nothing_to_sweep(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sweeping, "STORES", {"postgresql": lambda: NOBODY})
    monkeypatch.setenv(SHARED, str(tmp_path))
    assert sweeping.sweep() == []


def test_folders_and_files_are_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sweeping, "STORES", {})
    monkeypatch.setenv(SHARED, str(tmp_path))
    own = owned_name()
    left = tmp_path / of_another_start(own)
    file = tmp_path / f"{left.name}_file"
    for folder in (left, tmp_path / own, tmp_path / "folder"):
        folder.mkdir()
        (folder / "file").touch()
    file.touch()
    (link := tmp_path / f"{left.name}_link").symlink_to(tmp_path / "folder")
    assert set(sweeping.sweep()) == {str(left), str(file), str(link)}
    assert {path.name for path in tmp_path.iterdir()} == {own, "folder"}
    assert (tmp_path / "folder/file").exists()


@pytest.mark.long
def test_a_run_that_is_killed(store: Store, tmp_path: Path) -> None:
    """In the middle of a test: nothing of it can end well."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_some.py").write_text(WAITING)
    with temporary(store, TABLES) as alive:
        name = killed(tmp_path, store.url("nobody"))
        assert name in store.names()
        sweeping.sweep()
        assert name not in store.names()
        assert alive in store.names()


def killed(folder: Path, url: str) -> str:
    """Kill a pytest when its test has a database; return that one's name."""
    own = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "-s", "-p", "no:asyncio"],
        cwd=folder,
        env={**inherited(), **own, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        uses = next((line for line in lines if "It uses " in line), "nothing")
        process.kill()
    return Path(uses.split()[-1]).name.removesuffix(".sqlite3")
