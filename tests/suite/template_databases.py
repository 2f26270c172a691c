"""Template databases: made once, kept between runs, and copied for who needs one.

    tables    migrated
    rows      with the fixture rows, too

Their names have the digest of what makes them, so that a checkout which makes others
has its own, and the days in which they are good: `tests.suite.sweeping` removes them
after those.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Final

import django

from tests.secrecy import is_watching, look_at_rows
from tests.suite.owners import owned_name
from tests.suite.processes import RUN
from tests.suite.programs import starting_for_all
from tests.suite.stores import Store

ROOT: Final = Path(__file__).resolve().parents[2]
TABLES: Final = "tables"
ROWS: Final = "rows"
MADE_OF: Final = {
    TABLES: (
        "mcp_app/migrations",
        "mcp_app/models",
        "mcp_app/protocol/jsonrpc.py",
        "mcp_project/settings.py",
        "tests/drill/migrations",
        "tests/drill/models.py",
    ),
    # Fixtures are published as anybody publishes, which all of the app has part in.
    ROWS: ("mcp_app", "mcp_project", "tests/drill", "tests/published.py"),
}
"""Modules and folders of modules; with what migrations import."""
PREPARE: Final = """
import django
django.setup()
from tests.drill.preparing import prepare
prepare()
"""
MIGRATE: Final = """
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0, interactive=False)
"""
PROGRAMS: Final = {TABLES: MIGRATE, ROWS: PREPARE}
INHERITED: Final = (
    *("HOME", "LANG", "LC_", "LD_", "PATH", "PG", "PYTHON", RUN, "TMPDIR"),
)
"""How the variables begin that the programs are given: no fault, no setting, nothing
that measures; what they make is for others, too."""
DAYS: Final = 3
SECONDS_OF_DAYS: Final = DAYS * 24 * 60 * 60
TEMPLATE: Final = re.compile(r"mcptemplate_(tables|rows)_[0-9a-f]{16}_(?P<period>\d+)")


def template(store: Store, kind: str) -> str:
    """Return the name of the database of a kind, which may have to be made first.

    Nobody may change it, or be connected to it.
    """
    name = _name(kind)
    if store.holds(name):
        return name
    with store.alone(name), starting_for_all():
        # Another process may have made it by now.
        if not store.holds(name):
            _make(store, kind, name)
    return name


def is_outdated(name: str) -> bool:
    """Whether this is a template that no run can still copy."""
    there = TEMPLATE.fullmatch(name)
    return there is not None and int(there["period"]) < _period() - 1


@contextmanager
def temporary(store: Store, kind: str = "") -> Iterator[str]:
    """Give the name of a new database: an empty one, or a copy of a template."""
    with _new(store, kind) as name:
        yield name
        if is_watching():
            for table, rows in store.rows(name):
                look_at_rows(table, rows)


def run(program: str, url: str) -> None:
    """Run one of `PROGRAMS` on a database."""
    inherited = {k: v for k, v in os.environ.items() if k.startswith(INHERITED)}
    settings = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.drill.settings"}
    subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**inherited, **settings},
        check=True,
    )


def _make(store: Store, kind: str, name: str) -> None:
    """Make it under another name: nobody finds half of it, whatever kills us."""
    with _new(store, TABLES if kind == ROWS else "") as unfinished:
        run(PROGRAMS[kind], store.url(unfinished))
        _digest.cache_clear()
        if _digest(kind) not in name:
            raise RuntimeError("Sources changed while a database was made of them.")
        store.rename(unfinished, name)


@contextmanager
def _new(store: Store, kind: str) -> Iterator[str]:
    original, name = template(store, kind) if kind else "", owned_name()
    try:
        if original:
            store.copy(original, name)
        else:
            store.create(name)
        yield name
    finally:
        store.drop(name)


def _name(kind: str) -> str:
    return f"mcptemplate_{kind}_{_digest(kind)}_{_period()}"


def _period() -> int:
    return int(time.time() / SECONDS_OF_DAYS)


@cache
def _digest(kind: str) -> str:
    parts = [django.get_version(), PROGRAMS[kind]]
    for path in _modules(MADE_OF[kind]):
        parts += [str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")]
    return blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


def _modules(places: tuple[str, ...]) -> Iterator[Path]:
    """Yield them without those that only try what the others do."""
    for place in places:
        path = ROOT / place
        there = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        yield from (each for each in there if not each.name.startswith("test_"))
