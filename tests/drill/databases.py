"""A pytest plugin: databases of a test's own, on the servers that can be reached.

Each is a copy of a template: one with the tables, or one with the fixture rows, too.
A template's name has the digest of the sources that make it, and it is kept: to migrate
takes seconds.  What a run has left that was killed is dropped by the next one.
`python -m tests.drill.databases` drops all that was made here.

POSTGRES_TEST_URL and MYSQL_TEST_URL name other servers, with a user who may create
databases.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    suppress,
)
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

import django
import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from django.test import TransactionTestCase

from tests.row_copies import RowCopy
from tests.secrecy import is_watching, look_at_file, look_at_rows

if TYPE_CHECKING:
    from pytest_django import DjangoDbBlocker

ROOT: Final = Path(__file__).resolve().parents[2]
POSTGRES: Final = os.environ.get("POSTGRES_TEST_URL", "postgres://postgres@127.0.0.1")
MYSQL: Final = os.environ.get("MYSQL_TEST_URL", "mysql://root@127.0.0.1")
FILES: Final = Path(tempfile.gettempdir()) / f"mcp-databases-{os.getuid()}"
_OWNER: Final = f"{platform.node()} {FILES}".encode()
OURS: Final = f"mcp_test_{blake2b(_OWNER, digest_size=3).hexdigest()}_"
"""How the names begin of what is made here: others may use the same servers."""
TABLES: Final = "tables"
ROWS: Final = "rows"
START: Final = "import django; django.setup();"
PROGRAMS: Final = {
    TABLES: f"{START} from django.core.management import call_command;"
    " call_command('migrate', verbosity=0, interactive=False)",
    ROWS: f"{START} from tests.drill.preparing import prepare; prepare()",
}
SOURCES: Final = {
    TABLES: (
        *("mcp_app/migrations", "mcp_app/models", "mcp_app/protocol/jsonrpc.py"),
        *("mcp_project/settings.py", "tests/drill/migrations", "tests/drill/models.py"),
    ),
    ROWS: ("mcp_app", "mcp_project", "tests/drill", "tests/published.py"),
}
KEPT_S: Final = 3 * 24 * 60 * 60
"""So long templates are kept that nobody uses any more."""
INHERITED: Final = ("HOME", "LANG", "LC_", "LD_", "PATH", "PG", "PYTHON", "TMPDIR")
NEEDED: Final[Mapping[str, Collection[str]]] = {
    "on_servers.py": ["postgresql", "mysql"],
    "on_postgresql.py": ["postgresql"],
    "on_mysql.py": ["mysql"],
}


@contextmanager
def _postgresql(name: str = "postgres") -> Iterator[Callable[..., list[Any]]]:
    """Give what executes a statement, and returns its rows; or skip the test."""
    try:
        opened = psycopg.connect(f"{POSTGRES}/{name}", autocommit=True)
    except psycopg.OperationalError as error:
        pytest.skip(f"PostgreSQL cannot be reached at {POSTGRES}: {error}")

    def execute(statement: str, *values: str) -> list[Any]:
        cursor = opened.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []

    with closing(opened):
        yield execute


@contextmanager
def _mysql(name: str = "") -> Iterator[Callable[..., list[Any]]]:
    driver: Any = pytest.importorskip("MySQLdb", exc_type=ImportError)
    at = urlsplit(MYSQL)
    try:
        opened = driver.connect(
            host=at.hostname or "127.0.0.1", port=at.port or 3306,
            user=at.username or "root", password=at.password or "",
            database=name, autocommit=True,
        )  # fmt: skip
    except driver.OperationalError as error:
        pytest.skip(f"MariaDB cannot be reached at {MYSQL}: {error}")
    with closing(opened), closing(opened.cursor()) as cursor:
        # Tables and rows refer to others that come later.
        cursor.execute("SET foreign_key_checks = 0")

        def execute(statement: str, *values: str) -> list[Any]:
            cursor.execute(statement, values or None)
            return list(cursor.fetchall())

        yield execute


CONNECTED: Final = {"postgresql": _postgresql, "mysql": _mysql}
NAMES: Final = {
    "postgresql": "SELECT datname FROM pg_database",
    "mysql": "SHOW DATABASES",
}
TABLE_NAMES: Final = {
    "postgresql": "SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
    "mysql": "SHOW TABLES",
}
BASE: Final = {"postgresql": POSTGRES, "mysql": MYSQL}


def _url(vendor: str, name: str) -> str:
    return (
        f"sqlite:///{FILES / name}" if vendor == "sqlite" else f"{BASE[vendor]}/{name}"
    )


def _names(vendor: str) -> list[str]:
    if vendor == "sqlite":
        return [each.name for each in FILES.glob(f"{OURS}*")]
    with CONNECTED[vendor]() as execute:
        return [each for (each,) in execute(NAMES[vendor]) if each.startswith(OURS)]


def _copy(vendor: str, original: str, name: str) -> None:
    if vendor == "sqlite":
        if original:
            shutil.copyfile(FILES / original, FILES / name)
        return
    with CONNECTED[vendor]() as execute:
        like = f" TEMPLATE {original}" if vendor == "postgresql" and original else ""
        execute(f"CREATE DATABASE {name}{like}")
    if vendor == "mysql" and original:
        with _mysql(name) as execute:
            for (table,) in execute(f"SHOW TABLES FROM {original}"):
                execute(execute(f"SHOW CREATE TABLE {original}.{table}")[0][1])
                execute(f"INSERT INTO {table} SELECT * FROM {original}.{table}")  # noqa: S608 - our own names


def _drop(vendor: str, name: str) -> None:
    if vendor == "sqlite":
        for path in FILES.glob(f"{name}*"):
            path.unlink(missing_ok=True)
        return
    force = " WITH (FORCE)" if vendor == "postgresql" else ""
    with CONNECTED[vendor]() as execute:
        execute(f"DROP DATABASE IF EXISTS {name}{force}")


def _drop_orphans(vendor: str) -> None:
    for name in _names(vendor):
        owner = re.fullmatch(rf"{OURS}(\d+)_\w+", name)
        if owner and not _is_running(int(owner[1])):
            _drop(vendor, name)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _look_at_rows(vendor: str, name: str) -> None:
    if vendor == "sqlite":
        look_at_file(FILES / name)
    elif is_watching():
        with CONNECTED[vendor](name) as execute:
            for (table,) in execute(TABLE_NAMES[vendor]):
                look_at_rows(table, execute(f"SELECT * FROM {table}"))  # noqa: S608 - our own names


def _digest(kind: str) -> str:
    paths = [each for place in SOURCES[kind] for each in _modules(ROOT / place)]
    parts = [django.__version__.encode(), PROGRAMS[kind].encode()]
    for each in paths:
        parts += [str(each.relative_to(ROOT)).encode(), each.read_bytes()]
    return blake2b(b"\0".join(parts), digest_size=8).hexdigest()


def _modules(place: Path) -> list[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


@cache
def template(vendor: str, kind: str) -> str:
    """Return the name of a database to copy, which is made if it is not there."""
    FILES.mkdir(mode=0o700, exist_ok=True)
    with open(FILES / f"{vendor}.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _drop_orphans(vendor)
        name = f"{OURS}{kind}_{_digest(kind)}"
        made = FILES / f"{vendor}-{name}.made"
        if not (made.exists() and name in _names(vendor)):
            _drop(vendor, name)
            _copy(vendor, "", name)
            run(PROGRAMS[kind], _url(vendor, name))
            _drop_old(vendor)
        # What was made while its sources changed is made anew by the next process.
        if name.endswith(_digest(kind)):
            made.touch()
    return name


def _drop_old(vendor: str) -> None:
    for old in FILES.glob(f"{vendor}-*.made"):
        if time.time() - old.stat().st_mtime > KEPT_S:
            _drop(vendor, old.stem.partition("-")[2])
            old.unlink()


def run(program: str, url: str) -> None:
    given = {k: v for k, v in os.environ.items() if k.startswith(INHERITED)}
    given |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.drill.settings"}
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=given, check=True)


@contextmanager
def database(vendor: str, kind: str = "") -> Iterator[str]:
    name = f"{OURS}{os.getpid()}_{uuid4().hex[:8]}"
    FILES.mkdir(mode=0o700, exist_ok=True)
    original = template(vendor, kind) if kind else ""
    _copy(vendor, original, name)
    try:
        yield name
    finally:
        _look_at_rows(vendor, name)
        _drop(vendor, name)


@contextmanager
def _at(vendor: str, kind: str = "") -> Iterator[str]:
    with database(vendor, kind) as name:
        yield _url(vendor, name)


Make = Callable[[], AbstractContextManager[str]]
DATABASES: Final[Mapping[str, Make]] = {v: partial(_at, v) for v in CONNECTED}
PREPARED: Final[Mapping[str, Make]] = {v: partial(_at, v, ROWS) for v in CONNECTED}
postgresql_database: Final = DATABASES["postgresql"]


def prepared_file() -> Path:
    return FILES / template("sqlite", ROWS)


def prepare_database(url: str) -> None:
    run(PROGRAMS[ROWS], url)


until_the_end: Final = ExitStack()
"""What a process of the tests keeps for all of them."""
# For programs that are no tests.
atexit.register(until_the_end.close)


@pytest.fixture(scope="session", autouse=True)
def _end() -> Iterator[None]:
    """Close it last of all, where an error is still one of a test."""
    yield
    until_the_end.close()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    needed = NEEDED.get(collection_path.name)
    return True if needed is not None and connection.vendor not in needed else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs another database, where somebody names such a module."""
    for item in items:
        needed = NEEDED.get(item.path.name)
        if needed is not None and connection.vendor not in needed:
            vendors = " or ".join(needed)
            reason = f"It needs a DATABASE_URL of {vendors}, not {connection.vendor}."
            item.add_marker(pytest.mark.skip(reason))


@pytest.fixture(params=["sqlite", *DATABASES])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/new.sqlite3"
        return
    with DATABASES[request.param]() as url:
        yield url


@pytest.fixture(params=["sqlite", *PREPARED])
def prepared_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{shutil.copy(prepared_file(), tmp_path / 'new.sqlite3')}"
        return
    with PREPARED[request.param]() as url:
        yield url


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """The test database of this process, in the place of pytest-django's."""
    before = connection.settings_dict["NAME"]
    vendor = connection.vendor
    with database(vendor, TABLES) as name, pytest.MonkeyPatch.context() as patched:
        # Not while tests run: what has no mark is to fail, and leave nothing.
        with django_db_blocker.unblock():
            _connect(FILES / name if vendor == "sqlite" else name)
            migrated.append(_rows_of_migrations())
        patched.setattr(TransactionTestCase, "_fixture_teardown", lambda _: empty())
        yield
        with django_db_blocker.unblock():
            _connect(before)


migrated: Final[list[RowCopy]] = []


def _rows_of_migrations() -> RowCopy:
    from mcp_app.models import DefinitionVersion, Server  # noqa: PLC0415 - apps are ready

    return RowCopy([Server, DefinitionVersion])


def empty() -> None:
    """Leave in the test database what migrations wrote, and nothing else."""
    call_command("flush", verbosity=0, interactive=False, reset_sequences=False)
    migrated[0].write()


def _connect(name: str | Path) -> None:
    from django.conf import settings  # noqa: PLC0415

    connection.close()
    settings.DATABASES[connection.alias]["NAME"] = name
    connection.settings_dict["NAME"] = name


def drop_all() -> None:
    shutil.rmtree(FILES, ignore_errors=True)
    for vendor in CONNECTED:
        with suppress(pytest.skip.Exception):
            for each in _names(vendor):
                _drop(vendor, each)


if __name__ == "__main__":
    drop_all()
