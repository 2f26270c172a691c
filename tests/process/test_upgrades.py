"""Two releases serve one database: the newer one has a column more.

The older one is that of the tag, or of the last commit if there is none.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Event
from typing import Any, Final

import pytest

from tests.admin.pages import Fields
from tests.drill.databases import DATABASES, PROGRAMS, ROWS
from tests.drill.ports import HOST, free_port
from tests.drill.programs import Program
from tests.drill.running import ROOT, SERVING, START_S, THERE
from tests.newcomer.programs import run
from tests.process.clusters import described, python_environment
from tests.process.staff import Staff
from tests.process.streaming import Session, called

pytestmark = [pytest.mark.programs, pytest.mark.long]

ARCHIVE: Final = '(git archive v0.1.0 || git archive HEAD) 2>/dev/null | tar -x -C "$0"'
USER: Final = """
from django.contrib.auth.models import User
User.objects.create_superuser("admin", password="admin")
"""
BEFORE: Final = "    app = models.CharField("
COLUMN: Final = 'models.CharField(max_length=9, default="", db_default="")'


def make_newer_tree(folder: Path) -> None:
    for name in ("mcp_app", "mcp_project", "templates", "tests"):
        shutil.copytree(ROOT / name, folder / name)
    definitions = folder / "mcp_app/models/definitions.py"
    before, after = definitions.read_text().split(BEFORE)
    definitions.write_text(f"{before}    added = {COLUMN}\n{BEFORE}{after}")


@contextmanager
def called_workers(tree: Path, environment: Mapping[str, str]) -> Iterator[list[str]]:
    """Serve by two processes that are called until they are to stop: no call fails."""
    left, command = Event(), [sys.executable, "-m", "tests.drill.serve"]
    with ExitStack() as stack:
        workers: dict[str, Program] = {}
        for port in (free_port(), free_port()):
            given = {**environment, **THERE, "PORT": str(port), "SERVER": "uvicorn"}
            program = stack.enter_context(Program(command, cwd=tree, env=given))
            workers[f"http://{HOST}:{port}/mcp"] = program
        for program in workers.values():
            program.wait_until(lambda: SERVING in program.output, START_S)  # noqa: B023
        pool = stack.enter_context(ThreadPoolExecutor())
        stack.callback(left.set)
        loads = [pool.submit(call_until, left, url) for url in workers]
        yield [*workers]
        left.set()
        assert min(each.result() for each in loads) > 0
        assert [each.stop() for each in workers.values()] == [0, 0]


def call_until(left: Event, url: str) -> int:
    calls = 0
    while not left.wait(0.02):
        (message,) = called(url, "drill_add", a=calls, b=1).whole().messages
        calls += 1
        assert message["result"]["content"][0]["text"] == str(calls)
    return calls


def fill_in(staff: Staff, page: str, **values: Any) -> None:
    fields = Fields()
    fields.feed(staff.get(page).text)
    done = staff.submit(page, **{**fields.values, **values})
    assert done.status_code == 302, done.text


def publish_tools(session: Session, *pairs: tuple[str, str]) -> None:
    """Let staff save tools at one process each, and publish them at the other."""
    for url, other in pairs:
        name = f"added-{url[-9:-4]}-{other[-9:-4]}"
        with closing(Staff(url)) as saving, closing(saving.at(other)) as publishing:
            sent = {"name": name, "description": "New.", "text": "Yes."}
            page = "/admin/mcp_app/tool/add/?kind=text"
            fill_in(saving, page, changes="reads", **sent)
            key = publishing.key("mcp_app/tool", name)
            fill_in(publishing, f"/admin/mcp_app/tool/{key}/publish/")
        for each in (url, other):
            assert name in described(each)
            assert session.at(each).call(name)["content"][0]["text"] == "Yes."


def test_each_release_serves_beside_the_other(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    subprocess.run(["sh", "-c", ARCHIVE, old], cwd=ROOT, check=False)
    if not (old / "mcp_app").exists():
        pytest.skip("There is no older code: this is no checkout of Git.")
    make_newer_tree(new)
    newest = max((old / "mcp_app/migrations").glob("0*.py")).stem
    django = [sys.executable, "-m", "django"]
    with DATABASES["postgresql"]() as url, ExitStack() as older, ExitStack() as newer:
        environment = python_environment({"DATABASE_URL": url})
        run([sys.executable, "-c", PROGRAMS[ROWS] + USER], old, environment)
        first, second = older.enter_context(called_workers(old, environment))
        session = Session(first)
        run([*django, "makemigrations", "mcp_app"], new, environment)
        run([*django, "migrate"], new, environment)
        third, fourth = newer.enter_context(called_workers(new, environment))
        publish_tools(session, (first, third), (fourth, second))
        older.close()
        first, second = older.enter_context(called_workers(old, environment))
        publish_tools(session, (third, first), (second, fourth))
        newer.close()
        run([*django, "migrate", "mcp_app", newest], new, environment)
        publish_tools(session, (first, second))
