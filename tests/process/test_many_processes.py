"""What one process was told is true in every other, once it was answered."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from mcp_app.wakeup.workers import FRESHNESS
from tests.drill.databases import DATABASES
from tests.drill.rows import TOOLS
from tests.drill.running import OWN, ROOT, running
from tests.process.streaming import Answer, Session, listening, stateless
from tests.wakeup.redis_servers import RedisServer

PROCESSES: Final = 3
ROUNDS: Final = {"sqlite": 2, "postgresql": 4, "mysql": 2}
URI: Final = "test://static-text"
LISTED: Final = "drill_add"
DESCRIPTIONS: Final = {
    2: "Adds two numbers in another way.",
    1: next(each["description"] for each in TOOLS if each["name"] == LISTED),
}
"""What the versions of the listed tool say; to begin with, clients see the last."""
TOOLS_CHANGED: Final = "notifications/tools/list_changed"
UPDATED: Final = "notifications/resources/updated"

PREPARE: Final = """
import django
django.setup()
from django.contrib.auth.models import Permission, User
from mcp_app.models import Server, Tool
from tests.drill.preparing import prepare
from tests.published import published
prepare()
User.objects.create_superuser("admin", password="admin")
ana = User.objects.create_user("ana")
ana.user_permissions.add(Permission.objects.get(codename="view_tool"))
published(
    Server(slug="private", access="name", selection="tags", tags="private")
)
drill_add = Tool.objects.get(name="drill_add")
drill_add.description = "Adds two numbers in another way."
drill_add.save()
published(drill_add)
published(Tool(
    name="secret", permission="mcp_app.view_tool", tags="private",
    config='{"content": [{"type": "text", "text": "psst"}]}',
))
"""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Several processes with one database."""

    urls: list[str]
    vendor: str

    @property
    def rounds(self) -> Iterator[tuple[str, list[str]]]:
        """Yield one process, and the others; each in its turn."""
        for number in range(ROUNDS[self.vendor]):
            here = self.urls[number % PROCESSES]
            yield here, [each for each in self.urls if each != here]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(vendor, marks=pytest.mark.xdist_group(f"cluster {vendor}"))
        for vendor in ROUNDS
    ],
)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    with ExitStack() as stack:
        if request.param == "sqlite":
            directory = tmp_path_factory.mktemp("cluster")
            url = f"sqlite:///{directory}/db.sqlite3"
        else:
            url = stack.enter_context(DATABASES[request.param]())
        environment = {
            "DATABASE_URL": url,
            "MCP_AUTHENTICATION": json.dumps({"name": "tests.auth.callables.by_name"}),
        }
        if request.param == "postgresql":
            redis = RedisServer()
            redis.start()
            stack.callback(redis.kill)
            environment["REDIS_URL"] = redis.url
        _prepare(environment)
        servers = [running("uvicorn", environment) for _ in range(PROCESSES)]
        urls = [stack.enter_context(server) for server in servers]
        # Each has loaded its catalogs, and has its row.
        for each in urls:
            assert listed(each)
        yield Cluster(urls, request.param)


def _prepare(environment: dict[str, str]) -> None:
    inherited = {k: v for k, v in os.environ.items() if k not in OWN}
    settings = {"DJANGO_SETTINGS_MODULE": "tests.drill.settings"}
    subprocess.run(
        [sys.executable, "-c", PREPARE],
        cwd=Path(ROOT),
        env={**inherited, **environment, **settings},
        check=True,
    )


def described(url: str) -> dict[str, str]:
    """Return the tools of the default server, with their descriptions."""
    answer = stateless(url, "tools/list").whole()
    result = answer.messages[0].get("result")
    assert result is not None, answer.messages
    return {tool["name"]: tool["description"] for tool in result["tools"]}


def listed(url: str) -> set[str]:
    """Return the names of the tools of the default server."""
    return set(described(url))


def test_a_closed_session_is_closed_everywhere(cluster: Cluster) -> None:
    for here, others in cluster.rounds:
        session = Session(here)
        calls = [session.at(each).called("drill_sleep", seconds=30) for each in others]
        standing = [session.at(each).standing() for each in others]
        for call in calls:
            call.until(lambda answer: answer.raw)
        assert session.close().whole().status == 204
        for each in cluster.urls:
            assert session.at(each).request("ping").whole().status == 404
        # What ran there has ended, without an answer.
        for answer in (*calls, *standing):
            assert not any("id" in message for message in answer.whole().messages)


def test_sessions_that_staff_end_are_ended_everywhere(cluster: Cluster) -> None:
    for here, others in cluster.rounds:
        session = Session(here)
        calls = [session.at(each).called("drill_sleep", seconds=30) for each in others]
        standing = session.standing()
        for call in calls:
            call.until(lambda answer: answer.raw)
        with closing(Staff(here)) as staff:
            page = staff.get("/admin/mcp_app/session/").text
            keys = re.findall(r'name="_selected_action" value="(\d+)"', page)
            staff.act("mcp_app/session", "end_sessions", *keys)
        for each in cluster.urls:
            assert session.at(each).request("ping").whole().status == 404
        for answer in (*calls, standing):
            assert not any("id" in message for message in answer.whole().messages)


def test_a_level_holds_everywhere(cluster: Cluster) -> None:
    for here, others in cluster.rounds:
        session = Session(here)
        for level, heard in (("debug", 1), ("error", 0)):
            for each in others:
                session.at(each).request("ping").whole()
            session.request("logging/setLevel", level=level).whole()
            for each in others:
                logged = session.at(each).called("drill_log", level="info", text="x")
                *notes, _ = logged.whole().messages
                assert len(notes) == heard


def test_a_subscription_holds_everywhere(cluster: Cluster) -> None:
    for here, others in cluster.rounds:
        session = Session(here)
        standing = session.at(others[0]).standing()
        session.request("resources/subscribe", uri=URI).whole()
        touch(others[1])
        standing.until(lambda each: updated(each) == 1)
        session.request("resources/unsubscribe", uri=URI).whole()
        touch(others[1])
        session.close().whole()
        assert updated(standing.whole()) == 1


def test_a_stream_that_comes_back_elsewhere_is_told_what_it_missed_once(
    cluster: Cluster,
) -> None:
    for here, (there, elsewhere) in islice(cluster.rounds, 2):
        session = Session(here)
        session.request("resources/subscribe", uri=URI).whole()
        standing = session.standing()
        touch(there)
        standing.until(updated)
        # The next process announces that, too, when the client is there.
        again = session.at(there).standing(last_id(standing))
        settled(again)
        assert again.messages == []
        again.leave()
        with closing(Staff(there)) as staff:
            key = staff.key("mcp_app/tool", LISTED)
            for action in ("stop_chosen", "start_chosen"):
                staff.act("mcp_app/tool", action, key)
        # A call has its answer before its change is written.
        watching = listening(here, resourceSubscriptions=[URI])
        for count in (1, 2):
            touch(here)
            watching.until(lambda each, count=count: updated(each) == count)  # type: ignore[misc]
        again = session.at(elsewhere).standing(last_id(again))
        again.until(lambda answer: len(answer.messages) > 1)
        settled(again)
        methods = sorted(message["method"] for message in again.messages)
        assert methods == [UPDATED, TOOLS_CHANGED], again.raw
        for each in cluster.urls:
            again = session.at(each).standing(last_id(again))
            settled(again)
            assert again.messages == []
        # It is the newest of three: the others are told nothing more.
        touch(there)
        again.until(updated)
        settled(again)
        assert (len(again.messages), updated(standing)) == (1, 1)
        watching.leave()
        session.close().whole()


def last_id(answer: Answer) -> str:
    return answer.field("id")[-1]


def touch(url: str) -> None:
    stateless(url, "tools/call", name="drill_touch", arguments={"uri": URI}).whole()


def updated(answer: Answer) -> int:
    methods = [message.get("method") for message in answer.messages]
    return methods.count(UPDATED)


class Staff(httpx.Client):
    """A superuser in the admin of one process."""

    def __init__(self, url: str) -> None:
        super().__init__(base_url=url.removesuffix("/mcp"), follow_redirects=True)
        sent = {"username": "admin", "password": "admin", "next": "/admin/"}
        assert "Log out" in self.submit("/admin/login/", **sent).text

    def submit(self, path: str, **sent: Any) -> httpx.Response:
        """Post a form."""
        self.get(path)
        sent["csrfmiddlewaretoken"] = self.cookies["csrftoken"]
        return self.post(path, data=sent)

    def key(self, model: str, name: str) -> str:
        """Return the primary key of a row by what its list shows."""
        page = self.get(f"/admin/{model}/", params={"q": name}).text
        link = rf'href="/admin/{model}/(\d+)/change/[^"]*">[^/]*\b{name}<'
        found = re.search(link, page)
        assert found, page
        return found[1]

    def publish(self, model: str, key: str, version: int) -> None:
        """Publish an old version again."""
        path = f"/admin/{model}/{key}/rollback/{version}/"
        number = re.search(r'name="number" value="(\d+)"', self.get(path).text)
        # Clients see it already where nothing can be pressed.
        if number is not None:
            done = self.submit(path, number=number[1])
            assert "is published: every worker serves it" in done.text, done.text

    def act(self, model: str, action: str, *keys: str) -> None:
        """Do something to rows."""
        sent = {"action": action, "_selected_action": list(keys)}
        assert self.submit(f"/admin/{model}/", **sent).status_code == 200


def test_what_staff_stop_is_stopped_everywhere(cluster: Cluster) -> None:
    for here, _ in cluster.rounds:
        listen = listening(cluster.urls[0], toolsListChanged=True)
        with closing(Staff(here)) as staff:
            key = staff.key("mcp_app/tool", LISTED)
            for action, there in (("stop_chosen", False), ("start_chosen", True)):
                seen = len(listen.messages)
                staff.act("mcp_app/tool", action, key)
                for each in cluster.urls:
                    assert (LISTED in listed(each)) is there
                listen.until(lambda each, seen=seen: len(each.messages) > seen)  # type: ignore[misc]


class Lister(threading.Thread):
    """Lists the tools of one process again and again."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._stopped = threading.Event()
        self.lists: list[tuple[float, str | None]] = []
        """When each began, and how the tool was described; None where it was not."""
        self.start()

    def run(self) -> None:
        while not self._stopped.is_set():
            began = time.monotonic()
            self.lists.append((began, described(self._url).get(LISTED)))

    def stop(self) -> list[tuple[float, str | None]]:
        """Return the lists after a few more."""
        enough = len(self.lists) + 5
        while len(self.lists) < enough:
            time.sleep(0.001)
        self._stopped.set()
        self.join()
        return self.lists


def settled(listen: Answer) -> int:
    """Return how much was told when nothing more comes of what was before."""
    told = -1
    while told != len(listen.messages):
        told = len(listen.messages)
        time.sleep(4 * FRESHNESS)
    return told


def test_nobody_who_was_told_is_shown_an_old_list(cluster: Cluster) -> None:
    for here, (there, elsewhere) in cluster.rounds:
        with closing(Staff(here)) as staff:
            key = staff.key("mcp_app/tool", LISTED)
            for version, text in DESCRIPTIONS.items():
                listen = listening(there, toolsListChanged=True)
                lister = Lister(elsewhere)
                seen = settled(listen)
                acting = threading.Thread(
                    target=staff.publish, args=("mcp_app/tool", key, version)
                )
                acting.start()
                # Whoever is told by one process lists at another.
                listen.until(lambda each, seen=seen: len(each.messages) > seen)  # type: ignore[misc]
                told = time.monotonic()
                acting.join()
                later = [found for began, found in lister.stop() if began > told]
                assert later
                assert set(later) == {text}


def test_what_staff_publish_is_published_everywhere(cluster: Cluster) -> None:
    for here, _ in cluster.rounds:
        with closing(Staff(here)) as staff:
            key = staff.key("mcp_app/tool", LISTED)
            for version, text in DESCRIPTIONS.items():
                staff.publish("mcp_app/tool", key, version)
                assert {described(each)[LISTED] for each in cluster.urls} == {text}
            staff.act("mcp_app/tool", "unpublish_chosen", key)
            assert not any(LISTED in listed(each) for each in cluster.urls)
            staff.publish("mcp_app/tool", key, 1)
            assert all(LISTED in listed(each) for each in cluster.urls)


def test_a_right_that_was_taken_away_is_gone_everywhere(cluster: Cluster) -> None:
    for here, _ in cluster.rounds:
        with closing(Staff(here)) as staff:
            key = staff.key("auth/user", "ana")
            for rights in ([], ["view_tool"]):
                _save_rights(staff, key, rights)
                for each in cluster.urls:
                    assert secrets(each) == ({"secret"} if rights else set())


def _save_rights(staff: Staff, key: str, rights: list[str]) -> None:
    path = f"/admin/auth/user/{key}/change/"
    page = staff.get(path).text
    shown = re.search(r'value="(\d+)"[^>]*>[^<]*Can view tool<', page)
    assert shown, page
    sent: dict[str, Any] = {"username": "ana", "is_active": "on"}
    for name in ("date_joined_0", "date_joined_1"):
        value = re.search(rf'name="{name}" value="([^"]*)"', page)
        assert value, page
        sent[name] = value[1]
    if rights:
        sent["user_permissions"] = [shown[1]]
    saved = staff.submit(path, **sent)
    assert "was changed successfully" in saved.text, saved.text


def secrets(url: str) -> set[str]:
    """Return the names of the tools that Ana sees."""
    asked = stateless(f"{url}/private", "tools/list", headers={"X-Name": "ana"})
    return {tool["name"] for tool in asked.whole().messages[0]["result"]["tools"]}
