"""Webhooks: every event arrives, whichever process dies, and wherever.

Three processes deliver to a receiver that answers in each way.  Each round one of them
is killed (SIGKILL), or stands still for longer than its lease, at a step of a delivery;
meanwhile a program lets things happen, and rolls back some.  After the last round the
receiver is well, and what it has got is compared with what has happened.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from mcp_app.protocol.cursors import Cursor, derived_key, open_cursor
from mcp_app.protocol.events import EXTENSION
from mcp_app.protocol.webhooks import sign_message
from tests.drill.databases import CONNECTED, PREPARED
from tests.drill.ports import free_port
from tests.drill.programs import Program
from tests.drill.running import THERE, inherited, started
from tests.drill.serve import SETTINGS
from tests.egress.certificates import write_certificate
from tests.events.receiver import FINE, POSTS, REFUSALS, WAYS
from tests.process.clusters import run_python
from tests.process.streaming import META, JsonObject, stateless
from tests.reliability.rounds import Round
from tests.reliability.site import Site

TEST: Final = "deliveries to webhooks"
BY_WORKERS: Final = "deliveries by mcp_worker"
PROCESSES: Final = 3
STEPS: Final = ("claimed", "read", "posting", "posted", "stored", "ending")
DOMAIN: Final = "receiver.test"
TOLD: Final = tuple(each for each in WAYS if each != "refusing")
PATIENCE_S: Final = 120
STILL_S: Final = 8
"""So long a process stands still: its lease of six seconds is over."""
MOVED_S: Final = 2
ATTEMPTS: Final = 5
KEY: Final = "a key for the drill of webhooks, which seals nothing of worth: 012"
SECRET: Final = f"whsec_{'QUJD' * 11}"
TAKES: Final[JsonObject] = {
    f"{META}clientCapabilities": {"extensions": {EXTENSION: {}}}
}
PREPARE: Final = """
import django; django.setup()
from mcp_app.models import Server
from tests.published import published
published(Server(slug="told", access="header"))
"""
WAITING: Final = """
SELECT count(*) FROM mcp_app_eventsubscription
WHERE retries <> '[]' OR position < (SELECT max(number) FROM mcp_app_occurrence)
OR EXISTS (SELECT 1 FROM mcp_app_occurrence WHERE number IS NULL)
"""
EMIT: Final = """
import django; django.setup()
from tests.drill.functions.happening import emit_until_enough
emit_until_enough()
"""


def waited(true: Callable[[], object], seconds: float = PATIENCE_S) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.05)
    return False


class Told:
    """Processes that deliver, a receiver, and what happens meanwhile."""

    def __init__(self, stack: ExitStack, url: str, seed: int, deliver: str) -> None:
        self.folder = folder = Path(stack.enter_context(TemporaryDirectory()))
        self._chance = random.Random(seed)
        net = f"127.{self._chance.randrange(1, 255)}.{os.getpid() % 255}"
        self.address, self.forbidden = f"{net}.1", f"{net}.2"
        self._database = url.rpartition("/")[2]
        write_certificate(folder, f"*.{DOMAIN}")
        options = {
            "ca": str(folder / "certificate.pem"),
            "networks": [f"{self.address}/32"],
            "deliver": deliver,
        }
        self._environment = {
            **inherited(),
            **THERE,
            "DJANGO_SETTINGS_MODULE": SETTINGS,
            "DATABASE_URL": url,
            "HAPPENINGS": str(folder),
            "MCP_AUTHENTICATION": json.dumps({"header": "tests.serving.by_header"}),
            "MCP_EVENTS": json.dumps(options),
            "SECRET_KEY": KEY,
        }
        self._port = free_port()
        (folder / "port").write_text(str(self._port))
        self.move(self.address)
        run_python(self._environment, "-c", PREPARE)
        command = [sys.executable, "-m", "tests.events.receiver", self.address]
        command += [self.forbidden, str(self._port), str(folder)]
        self._receiver = stack.enter_context(Program(command))
        self._receiver.wait_until(lambda: "Listens." in self._receiver.output, 60)
        self._start = self._server if deliver == "here" else self._worker
        self._deliverers = [self._start() for _ in range(PROCESSES)]
        stack.callback(lambda: [each.kill() for each in self._deliverers])
        self._web = self._deliverers[0] if deliver == "here" else self._server()
        stack.callback(self._web.kill)
        self._emitter = Program([sys.executable, "-c", EMIT], env=self._environment)
        stack.enter_context(self._emitter)

    def _server(self) -> Any:
        return started("uvicorn", self._environment)

    def _worker(self) -> Any:
        command = [sys.executable, "manage.py", "mcp_worker", "--places", "0"]
        return Program(command, env=self._environment)

    def move(self, moving: str) -> None:
        """Let the name of one receiver lead elsewhere."""
        names = {f"{way}.{DOMAIN}": self.address for way in WAYS}
        names |= {f"moving.{DOMAIN}": moving, f"private.{DOMAIN}": self.forbidden}
        new = self.folder / "names.new"
        new.write_text(json.dumps(names))
        new.replace(self.folder / "names.json")

    def execute(self, statement: str) -> list[Any]:
        with CONNECTED["postgresql"](self._database) as execute:
            return execute(statement)

    def subscribe(self, way: str, number: int) -> JsonObject:
        arguments = {"lane": lane} if (lane := lane_of(number)) else {}
        url = f"https://{way}.{DOMAIN}:{self._port}/hooks/{way}?number={number}"
        delivery = {"mode": "webhook", "url": url, "secret": SECRET}
        answer = stateless(
            f"{self._web.url}/told",
            "events/subscribe",
            {"X-User": "reader"},
            name="drill.happened",
            arguments=arguments,
            delivery=delivery,
            ttlMs=7_200_000,
            _meta=TAKES,
        ).whole()
        found: JsonObject = answer.messages[-1]
        return found

    def strike(self, step: str, number: signal.Signals) -> bool:
        """Let one process die at a step, and start it anew; return whether it did."""
        order = self.folder / f"{step}.{number.name}"
        order.touch()
        # For less time than it takes to give an event up.
        self.move(self._chance.choice([self.address, self.forbidden]))
        time.sleep(MOVED_S)
        self.move(self.address)
        gone = waited(lambda: not order.exists())
        for mark in list(self.folder.glob(f"{step}.[0-9]*")):
            pid = int(mark.suffix[1:])
            mark.unlink()
            if number is signal.SIGSTOP:
                time.sleep(STILL_S)
                os.kill(pid, signal.SIGCONT)
                continue
            for place, each in enumerate(self._deliverers):
                if each.process.pid == pid:
                    each.kill()
                    self._deliverers[place] = self._start()
        return gone

    def settle(self) -> bool:
        """Let all arrive that can; return whether it did."""
        (self.folder / "enough").touch()
        self._emitter.wait()
        (self.folder / FINE).touch()
        return waited(lambda: self.execute(WAITING) == [(0,)])

    # -- what came ---------------------------------------------------------------------

    def lanes(self) -> dict[str, tuple[int, str]]:
        """Return number and lane of what happened, by the id of its event."""
        rows = self.execute("SELECT event_id, number, data FROM mcp_app_occurrence")
        return {
            identifier: (number, json.loads(data)["lane"])
            for identifier, number, data in rows
        }

    def rolled_back(self) -> set[int]:
        lines = (self.folder / "emitted").read_text().splitlines()
        return {int(each) for each in lines if not each.strip().endswith(("a", "b"))}

    def posts(self) -> dict[str, list[JsonObject]]:
        """Return what came to each receiver, in its order."""
        found: dict[str, list[JsonObject]] = defaultdict(list)
        for line in (self.folder / POSTS).read_text().splitlines():
            post = json.loads(line)
            post["message"] = json.loads(post["body"])
            found[post["host"]].append(post)
        return found


class Verdict:
    """What was wrong with what one receiver has got."""

    def __init__(
        self, told: Told, way: str, lane: str, posts: list[JsonObject]
    ) -> None:
        happened, rolled = told.lanes(), told.rolled_back()
        self._way = way
        self._wanted = {
            identifier: number
            for identifier, (number, own) in happened.items()
            if not lane or own == lane
        }
        self.wrong: list[str] = []
        self._settled = Counter[str]()
        self._failed = Counter[str]()
        if not posts or posts[0]["message"].get("type") != "verification":
            self.wrong.append(f"{way}: something came before a verification")
        for post in posts:
            message = post["message"]
            if post["to"] != told.address:
                self.wrong.append(f"{way}: {post['path']} came to {post['to']}")
            if not _is_signed(post):
                self.wrong.append(f"{way}: a wrong signature")
            if message.get("type") == "verification":
                continue
            identifier = message.get("eventId")
            if identifier not in self._wanted or message["data"]["number"] in rolled:
                self.wrong.append(f"{way}: {message}")
                continue
            self._check_cursor(way, message)
            is_over = 200 <= post["status"] < 300 or post["status"] in REFUSALS.values()
            (self._settled if is_over else self._failed)[identifier] += 1
        lost = self._wanted.keys() - self._settled.keys() - self._given_up()
        self.lost = sorted(self._wanted[each] for each in lost)
        self.twice = sum(each > 1 for each in self._settled.values())
        self.delivered = sum(self._settled.values())

    def __str__(self) -> str:
        counts = f"{self.delivered} delivered, {self.twice} twice"
        return f"{self._way}: {len(self._wanted)} wanted, {counts}, lost {self.lost}"

    def _given_up(self) -> set[str]:
        return {each for each, count in self._failed.items() if count >= ATTEMPTS}

    def _check_cursor(self, way: str, message: Mapping[str, Any]) -> None:
        keys = [derived_key(KEY, "cursors")]
        cursor: Cursor = open_cursor(
            message["cursor"], keys, server="told", listing="events"
        )
        known = self._settled.keys() | self._given_up() | {message["eventId"]}
        ahead = [
            number
            for identifier, number in self._wanted.items()
            if number <= int(cursor.position) and identifier not in known
        ]
        if ahead:
            self.wrong.append(f"{way}: the cursor {cursor.position} is beyond {ahead}")


def _is_signed(post: Mapping[str, Any]) -> bool:
    headers = post["headers"]
    identifier, seconds = headers["webhook-id"], int(headers["webhook-timestamp"])
    good = sign_message([SECRET], identifier, seconds, post["body"].encode())
    return bool(good == headers["webhook-signature"])


@contextmanager
def told(seed: int, deliver: str) -> Iterator[Told]:
    with ExitStack() as stack:
        url = stack.enter_context(PREPARED["postgresql"]())
        yield Told(stack, url, seed, deliver)


def lane_of(number: int) -> str:
    """Return what the subscriber of this number is told of, "" for all."""
    return "ab"[number % 2] if number % 3 else ""


def deliveries(
    site: Site, rounds: int, seed: int = 1, deliver: str = "here"
) -> Generator[Round]:
    """Yield strikes; the last one has what came of all."""
    test = TEST if deliver == "here" else BY_WORKERS
    with told(seed, deliver) as own:
        wrong, stops = [*_subscribe(own)], False
        for number in range(rounds):
            # 30 of 50 are killed, and each at all steps.
            stops, step = number % 5 in (1, 3), STEPS[number % len(STEPS)]
            if not own.strike(step, signal.SIGSTOP if stops else signal.SIGKILL):
                wrong.append(f"nobody came to {step}")
            if number < rounds - 1:
                yield Round(test=test, kills=int(not stops), resumes=int(stops))
        if not own.settle():
            wrong.append("something waits")
        posts = own.posts()
        verdicts = [
            Verdict(own, way, lane_of(number), posts[way])
            for number, way in enumerate(TOLD)
        ]
    wrong += chain.from_iterable(each.wrong for each in verdicts)
    wrong += [f"private: {each['body']}" for each in posts["private"]]
    kinds = [each["message"].get("type") for each in posts["refusing"]]
    wrong += [f"refusing: {each}" for each in kinds if each != "verification"]
    for line in (*map(str, verdicts), *wrong):
        sys.stderr.write(f"{test}: {line}\n")
    yield Round(
        test=test,
        asked=sum(each.delivered for each in verdicts),
        wrong=len(wrong),
        untold=sum(len(each.lost) for each in verdicts),
        kills=int(not stops),
        resumes=int(stops),
    )


def _subscribe(own: Told) -> Iterator[str]:
    """Subscribe each way; yield what went otherwise than it should."""
    for number, way in enumerate([*TOLD, "refusing", "private"]):
        answer = own.subscribe(way, number)
        if ("result" in answer) != (way in TOLD):
            sys.stderr.write(f"{way}: {answer}\n")
            yield f"{way}: {answer}"
