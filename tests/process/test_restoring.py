"""A backup takes the place of a site that went on, by the commands of its page."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from psycopg.conninfo import conninfo_to_dict

from mcp_app.streams.tasks import RESTORED
from tests.drill.databases import CONNECTED, POSTGRES
from tests.drill.programs import Program
from tests.drill.running import ROOT, inherited
from tests.egress.certificates import write_certificate
from tests.egress.peer import LOOPBACK
from tests.events.receiver import Receiver, serve
from tests.process.clusters import run_python
from tests.process.streaming import JsonObject, Session, stateless
from tests.reliability.deliveries import EMIT, PREPARE, SECRET, TAKES
from tests.tasks.killing import Site, python, site, wait_until

PAGE: Final = (ROOT / "docs/deploy/backup.md").read_text()
DUMP, RESTORE = re.findall(r"PostgreSQL.*?```sh\n(.*?)```", PAGE, re.DOTALL)
TYPE: Final = "drill.happened"
HELD: Final = "SELECT event_id FROM mcp_app_occurrence ORDER BY number"


def name_of(own: Site) -> str:
    return own.env["DATABASE_URL"].rpartition("/")[2]


def follow_page(commands: str, own: Site) -> None:
    server = conninfo_to_dict(POSTGRES)
    env = {f"PG{key.upper()}": str(value) for key, value in server.items()}
    commands = commands.replace("$(date +%Y%m%dT%H%M%S)", "DATE")
    command = ["sh", "-ec", commands.replace("mysite", name_of(own))]
    folder = own.env["HAPPENINGS"]
    subprocess.run(command, cwd=folder, env={**inherited(), **env}, check=True)


@contextmanager
def emitting(own: Site) -> Iterator[None]:
    enough = Path(own.env["HAPPENINGS"]) / "enough"
    enough.unlink(missing_ok=True)
    with Program([sys.executable, "-c", EMIT], env={**inherited(), **own.env}) as load:
        yield
        enough.touch()
        assert load.wait() == 0


class Reader:
    """A client that polls; `ids` are those of the events that it was told."""

    def __init__(self, own: Site) -> None:
        self._own, self._cursor, self.ids = own, JsonObject(), list[str]()
        self.read()

    def read(self) -> int:
        is_more = True
        while is_more:
            told = self._own.ask("events/poll", name=TYPE, **self._cursor)
            assert not told["truncated"]
            self._cursor, is_more = {"cursor": told["cursor"]}, told["hasMore"]
            self.ids += [each["eventId"] for each in told["events"]]
        return len(self.ids)


def subscribe(own: Site, url: str) -> None:
    run_python(own.env, "-c", PREPARE)
    webhook = {"mode": "webhook", "url": url, "secret": SECRET}
    told: JsonObject = {"name": TYPE, "delivery": webhook, "_meta": TAKES}
    user = {"X-User": "ana"}
    asks = [
        partial(stateless, f"{web.url}/told", "events/subscribe", user, **told)
        for web in own.webs
    ]
    # Each process must know the new server before tasks begin: where people can sign
    # in, the tasks of strangers have one place in it.
    wait_until(lambda: all("result" in ask().whole().messages[-1] for ask in asks))


def told_by(receiver: Receiver) -> set[str]:
    return {json.loads(each["body"]).get("eventId") for each in receiver.posts}


def go_on_after_backup(own: Site, reader: Reader) -> list[str]:
    """Back up while tasks run and events happen, then let them; return the tasks."""
    again = (False, True, False)
    tasks = [own.begin("ending", rerun=each) for each in again]
    with emitting(own):
        wait_until(lambda: all(own.notes("start", each) for each in tasks[:2]))
        wait_until(lambda: reader.read() > 5)
        follow_page(DUMP, own)
        # There was no place for it.
        assert own.states()[tasks[2]] == "waiting"
        own.may_end.touch()
        for each in tasks:
            assert own.ending(each)[0]["status"] == "completed"
        count = len(reader.ids)
        wait_until(lambda: reader.read() > count + 5)
        refused = python("manage.py mcp_restored", own.env)
        assert refused.wait() == 1
        assert "uses this database. Stop all processes" in refused.output
    return tasks


@pytest.mark.programs
@pytest.mark.long
def test_a_backup_takes_the_place_of_a_site_that_went_on(tmp_path: Path) -> None:
    write_certificate(tmp_path, "localhost")
    (tmp_path / "port").write_text("443")
    receiver = Receiver(tmp_path)
    url = f"https://localhost:{serve('127.0.0.1', 0, receiver).server_port}/"
    options = {"receivers": [url], "networks": LOOPBACK}
    more: dict[str, Any] = {
        "HAPPENINGS": str(tmp_path),
        "MCP_AUTHENTICATION": json.dumps({"header": "tests.serving.by_header"}),
        "MCP_EVENTS": json.dumps({**options, "ca": str(tmp_path / "certificate.pem")}),
    }
    with site("web", **more) as own:
        subscribe(own, url)
        early, late, at = Reader(own), Reader(own), own.webs[0].url
        session = Session(at)
        tasks = go_on_after_backup(own, late)
        assert [each.stop() for each in own.webs] == [0, 0]
        follow_page(RESTORE, own)
        for command in ("mcp_restored", "mcp_restored", "mcp_prune"):
            run_python(own.env, "manage.py", command)
        own.replace({each.process.pid for each in own.webs})
        assert session.request("tools/list").whole().status == 404
        assert Session(at).call("drill_add", a=1, b=1)["structuredContent"]
        with emitting(own):
            wait_until(lambda: early.read() > len(late.ids) + 5)
        with CONNECTED["postgresql"](name_of(own)) as execute:
            wait_until(lambda: early.read() == len(execute(HELD)))
            assert execute(HELD) == [(each,) for each in early.ids]
        late.read()
        assert {*early.ids} < {*late.ids}
        wait_until(lambda: {*early.ids} <= told_by(receiver))
        once, again, waited = (own.ending(each)[0] for each in tasks)
        assert again["status"] == "completed"
        assert once["error"]["message"] == waited["error"]["message"] == RESTORED
        assert [len(own.notes("start", each)) for each in tasks] == [1, 2, 1]
        follow_page("dropdb mysite_before", own)
