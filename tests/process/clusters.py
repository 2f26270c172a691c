"""Several processes that serve one database, and what their tests do with them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from _pytest.mark.structures import ParameterSet

from tests.drill import switches
from tests.drill.databases import PREPARED, prepared_file
from tests.drill.running import OWN, ROOT, THERE, DrillServer, started
from tests.invalidation.redis_servers import RedisServer
from tests.process.streaming import Answer, stateless

PROCESSES: Final = 4
LANES: Final = 5
"""Rows of each kind that are alike, so that as many rounds may run side by side."""
LINES: Final = 72
LISTED: Final = "drill_add"
AUTHENTICATION: Final = {
    "name": "tests.auth.callables.by_name",
    "token": "mcp_app.authentication.access_token",
    "oauth": "mcp_app.authentication.oauth",
}
ORIGIN: Final = "http://localhost"
"""The address that programs sign in at."""
CHANGING: Final = "changing"
"""A server whose list has only what changes, and is short for that."""

GUARDED: Final = "guarded"
"""A server with everything, for access tokens and for programs that sign in."""

PREPARE: Final = f"""
import json
import django
django.setup()
from django.contrib.auth.models import Group, Permission, User
from mcp_app.models import Server, Tool
from tests.drill.models import Ledger
from tests.published import published
right = Permission.objects.get(codename="view_tool")
User.objects.create_superuser("admin", password="admin")
for number in range({LANES}):
    user = User.objects.create_user(f"user{{number}}")
    user.user_permissions.add(right)
    group = Group.objects.create(name=f"group{{number}}")
    group.permissions.add(right)
    User.objects.create_user(f"member{{number}}").groups.add(group)
for number in range({LINES}):
    Ledger.objects.create(key=f"line{{number}}", worker="nobody")
published(
    Server(slug="private", access="name token", selection="tags", tags="private")
)
published(Server(
    slug="{CHANGING}", access="public", selection="tags", tags="{CHANGING}"
))
published(Server(slug="{GUARDED}", access="token oauth"))
published(Tool(
    name="secret", permission="mcp_app.view_tool", tags="private",
    config='{{"content": [{{"type": "text", "text": "psst"}}]}}',
))
for number in range({LANES}):
    tool = Tool(
        name=f"changing{{number}}", tags="{CHANGING}", description="version 1",
        config='{{"content": [{{"type": "text", "text": "same"}}]}}',
    )
    published(tool)
    tool.description = "version 2"
    tool.save()
    published(tool)
print(json.dumps({{
    "tool": dict(Tool.objects.values_list("name", "pk")),
    "user": dict(User.objects.values_list("username", "pk")),
    "group": dict(Group.objects.values_list("name", "pk")),
}}))
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """A database, and whether a doorbell rings."""

    vendor: str
    rings: bool = False


KINDS: Final[Mapping[str, Kind]] = {
    "sqlite": Kind("sqlite"),
    "postgresql": Kind("postgresql"),
    "postgresql-redis": Kind("postgresql", rings=True),
    "mariadb": Kind("mysql"),
}


def on_clusters(kind: str, *, others: Iterable[str] = ()) -> pytest.MarkDecorator:
    """Let a test run on one kind of cluster, and in `make test-all` on others.

    Each kind meets each family of tests: announcements, calls that are taken over,
    outages, stops, resuming and HTTP+SSE; and each loses a process to kill -9.
    """
    cases = [case_on(kind), *(case_on(other, long=True) for other in others)]
    return pytest.mark.parametrize("cluster", cases, indirect=True)


def case_on(kind: str, *values: object, long: bool = False) -> ParameterSet:
    """Return the case of `parametrize` that runs on a kind of cluster.

    It runs beside all others that do, on one worker.  `values` are those of other
    parameters, after that of the cluster.
    """
    marks = [pytest.mark.xdist_group(f"cluster {kind}")]
    if long:
        marks.append(pytest.mark.long)
    return pytest.param(kind, *values, marks=marks)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Several processes with one database; `kind` is a key of `KINDS`."""

    urls: list[str]
    kind: str
    environment: Mapping[str, str]
    keys: Mapping[str, Mapping[str, int]]
    """Primary keys, by the name of a model and that of the row."""
    faults: Path
    redis: RedisServer | None

    @property
    def database(self) -> str:
        return self.environment["DATABASE_URL"]

    def turns(self, rounds: int) -> Iterator[tuple[str, list[str]]]:
        """Yield one process, and the others; each in its turn."""
        for number in range(rounds):
            at = number % len(self.urls)
            yield self.urls[at], self.urls[at + 1 :] + self.urls[:at]

    def faulty(self, *names: str) -> AbstractContextManager[None]:
        return switches.on(self.faults, *names)


@contextmanager
def cluster(kind: str, *, wire: str = "check") -> Iterator[Cluster]:
    """Start a cluster; where its database is missing, the test is skipped."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        faults = directory / "faults"
        faults.mkdir()
        environment = {
            "DATABASE_URL": stack.enter_context(_database(kind, directory)),
            "FAULTS": str(faults),
            "LEDGER": "bound",
            "MCP_AUTHENTICATION": json.dumps(AUTHENTICATION),
            "MCP_PUBLIC_URL": ORIGIN,
            "MCP_HOSTS": "127.0.0.1",
            **THERE,
        }
        redis = RedisServer() if KINDS[kind].rings else None
        if redis is not None:
            redis.start()
            stack.callback(redis.kill)
            environment["REDIS_URL"] = redis.url
        keys = json.loads(run_python(environment, "-c", PREPARE))
        urls = stack.enter_context(_serving({**environment, "WIRE": wire}))
        yield Cluster(urls, kind, environment, keys, faults, redis)


@contextmanager
def _database(kind: str, directory: Path) -> Iterator[str]:
    if kind == "sqlite":
        shutil.copy(prepared_file(), directory / "db.sqlite3")
        yield f"sqlite:///{directory}/db.sqlite3"
        return
    with PREPARED[KINDS[kind].vendor]() as url:
        yield url


@contextmanager
def _serving(environment: Mapping[str, str]) -> Iterator[list[str]]:
    servers: list[DrillServer] = []

    def start(_: int) -> None:
        servers.append(started("uvicorn", environment))

    with ThreadPoolExecutor(PROCESSES) as pool:
        try:
            list(pool.map(start, range(PROCESSES)))
            # Each has loaded its catalogs, and has its row.
            for each in servers:
                assert listed(each.url)
            yield [each.url for each in servers]
        except BaseException as error:
            for each in servers:
                each.tell()
                each.kill()
                error.add_note(f"The server at {each.url} wrote:\n{each.output}")
            raise
        for each, status in zip(
            servers, pool.map(DrillServer.stop, servers), strict=True
        ):
            assert status == 0, each.output


def python_environment(environment: Mapping[str, str]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in OWN}
    settings = {"DJANGO_SETTINGS_MODULE": "tests.drill.settings"}
    return {**inherited, **environment, **settings}


def run_python(environment: Mapping[str, str], *arguments: str) -> str:
    # Where somebody serves, faults are the servers' alone.
    given = {name: value for name, value in environment.items() if name != "FAULTS"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=python_environment(given),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def described(url: str) -> dict[str, str]:
    answer = stateless(url, "tools/list").whole()
    result = answer.messages[0].get("result")
    assert result is not None, answer.messages
    return {tool["name"]: tool["description"] for tool in result["tools"]}


def listed(url: str) -> set[str]:
    return set(described(url))


def asked_for_secrets(url: str, user: str) -> Answer:
    return stateless(f"{url}/private", "tools/list", headers={"X-Name": user})


FOR_ALL: Final = frozenset({"pay", "get_task_result"})
"""The tools that everybody sees there."""


def secrets(asked: Answer) -> set[str]:
    message = asked.whole().messages[0]
    assert "result" in message, message
    return {tool["name"] for tool in message["result"]["tools"]} - FOR_ALL
