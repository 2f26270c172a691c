"""Sites that run tasks, whose processes are killed, stopped and restarted."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any, Final, NamedTuple, TypeAlias

from mcp_app.protocol.tasks import EXTENSION
from tests.drill.databases import CONNECTED, PREPARED
from tests.drill.programs import Program
from tests.drill.running import inherited, started
from tests.drill.serve import SETTINGS
from tests.invalidation.redis_servers import RedisServer
from tests.process.streaming import META, JsonObject, stateless

PATIENCE_S: Final = 90
CAPABLE: Final[JsonObject] = {"elicitation": {}, "extensions": {EXTENSION: {}}}
TAKES_TASKS: Final = {f"{META}clientCapabilities": CAPABLE}
YES: Final = {"confirm": {"action": "accept", "content": {"confirm": True}}}
WORKER_DIED: Final = "The worker that ran this task is gone."
DYING: Final = ("running", "ending")
COLUMNS: Final = "public_id, status, owner, deaths, result, error, updated_ms, ended_ms"
LOADS: Final = 4


class Kind(NamedTuple):
    """Who runs tasks, two at the same time: a server, or a program of Python."""

    tasks: str
    command: str = ""
    ready: str = ""
    processes: int = 1
    within_s: int = 20


CELERY: Final = "-m celery -A tests.drill.celery_app worker -c 2 -l INFO"
KINDS: Final = {
    "web": Kind("here", processes=2),
    # It looks at others only when it has been there for 20 s.
    "alone": Kind("here", within_s=25),
    "worker": Kind("worker", "manage.py mcp_worker --places 2 --patience 20", "Runs "),
    "celery": Kind("celery", CELERY, "ready.", within_s=60),
    "db_worker": Kind("django_tasks", "manage.py db_worker", "", 2, within_s=60),
}


Ending: TypeAlias = tuple[JsonObject, float]
"""A task that has ended, and when."""


class Tried(NamedTuple):
    """What became of a task."""

    number: int
    state: str
    is_lost: bool
    starts_too_often: bool
    seconds: float
    """From the signal, or the answer, until it ended or ran again."""


def patiently(look_s: float = 0.1) -> Iterator[None]:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        yield
        time.sleep(look_s)


def wait_until(true: Callable[[], object], look_s: float = 0.1) -> None:
    assert any(true() for _ in patiently(look_s))


def python(command: str, env: Mapping[str, str]) -> Program:
    return Program([sys.executable, *command.split()], env={**inherited(), **env})


class Site:
    """What serves and what runs tasks with one database, and a client of theirs."""

    def __init__(self, kind: Kind, database: str, env: Mapping[str, str]) -> None:
        self._kind, self._database, self.env = kind, database, env
        self._notes = Path(env["TASK_NOTES"])
        self.may_end = Path(f"{self._notes}.end")
        self._notes.touch()
        self._restarts = 0
        self.begun: dict[str, tuple[bool, int, float]] = {}
        """Tasks: whether each may run again, after how many restarts it began, when."""
        self.runners = [self._runner() for _ in range(kind.processes)]
        self.webs = [started("uvicorn", env)] if kind.command else self.runners

    def _runner(self, port: int | None = None) -> Any:
        if not self._kind.command:
            return started("uvicorn", self.env, port=port)
        program = python(self._kind.command, self.env)
        program.wait_until(lambda: self._kind.ready in program.output, PATIENCE_S)
        return program

    def close(self) -> None:
        for runner in {*self.runners, *self.webs}:
            runner.kill()

    def replace(self, pids: Collection[int]) -> None:
        """Start anew those of them that were started here, as a supervisor does."""
        for place, runner in enumerate(self.runners):
            if runner.process.pid in pids:
                runner.kill()
                self.runners[place] = self._runner(getattr(runner, "port", None))

    def restart(self, place: int) -> str:
        """Restart one that runs tasks by SIGTERM; return what it wrote."""
        runner = self.runners[place]
        # Not to its children, too: a program ends its own.
        runner.process.send_signal(signal.SIGTERM)
        assert (runner.wait if self._kind.command else runner.stop)() == 0
        self.replace({runner.process.pid})
        self._restarts += 1
        return str(runner.output)

    def ask(self, method: str, **params: Any) -> JsonObject:
        """Ask whoever serves, as a load balancer does."""
        for _ in patiently():
            for web in tuple(self.webs):
                answer = stateless(web.url, method, **params, _meta=TAKES_TASKS)
                answer.wait()
                if answer.error is None and answer.status != 503:
                    result: JsonObject = answer.messages[-1].get("result", {})
                    return result
        raise AssertionError(method)

    def begin(self, state: str, *, rerun: bool, seconds: float = 60) -> str:
        tool, now = "toil_again" if rerun else "toil", time.time()
        arguments = {"state": state, "seconds": seconds}
        task: str = self.ask("tools/call", name=tool, arguments=arguments)["taskId"]
        self.begun[task] = rerun, self._restarts, now
        return task

    def ending(self, task: str) -> Ending:
        """Wait for the end of a task; where it does not come that is nothing, never."""
        for _ in patiently():
            found = self.ask("tasks/get", taskId=task)
            if found.get("status") in ("completed", "failed", "cancelled"):
                return found, time.time()
        return {}, inf

    def judge(
        self, task: str, number: int, state: str, since: float, ending: Ending
    ) -> Tried:
        found, ended_at = ending
        rerun, dies = self.begun[task][0], state in DYING
        died = found.get("error", {}).get("message", "").startswith(WORKER_DIED)
        is_right = found.get("status") == "completed" or (died and dies and not rerun)
        starts = [at for _, at in self.notes("start", task)]
        most = 1 + (state == "parked") + (rerun and dies)
        # To leave a run to others is no death.
        often = len(starts) > most and not (rerun and state == "deployed")
        if often or not is_right:
            sys.stderr.write(f"{task=} {rerun=} {state=} {since=} {starts=} {found}\n")
        seconds = min([ended_at, *(at for at in starts if at > since)]) - since
        return Tried(number, state, not is_right, often, seconds)

    def notes(self, word: str, task: str) -> list[tuple[int, float]]:
        """Return which processes wrote that of a task, and when."""
        lines = (each.split() for each in self._notes.read_text().splitlines())
        return [(int(pid), float(at)) for *key, pid, at in lines if key == [word, task]]

    def rows(self) -> list[tuple[Any, ...]]:
        name = self.env["DATABASE_URL"].rpartition("/")[2]
        with CONNECTED[self._database](name) as execute:
            return execute(f"SELECT {COLUMNS} FROM mcp_app_task ORDER BY id")  # noqa: S608 - our own names

    def states(self) -> dict[str, str]:
        return {task: self._state(task, *others) for task, *others in self.rows()}

    def _state(self, task: str, status: str, owner: str, *_: object) -> str:
        if status != "working":
            return "parked" if status == "input_required" else "ended"
        running = "ending" if self.notes("end", task) else "running"
        return running if owner else "waiting"


@contextmanager
def site(
    who: str, database: str = "postgresql", least: int = 1, **more: str
) -> Iterator[Site]:
    """Start a site whose tasks run there, in so many processes at least.

    `more` is of its environment.
    """
    kind = KINDS[who]
    kind = kind._replace(processes=max(kind.processes, least))
    with ExitStack() as stack:
        env = {"TASK_TOOLS": "1", "MCP_TASKS": kind.tasks, "THREADS": "4"}
        env["DJANGO_SETTINGS_MODULE"] = SETTINGS
        env["DATABASE_URL"] = stack.enter_context(PREPARED[database]())
        env["TASK_NOTES"] = f"{stack.enter_context(TemporaryDirectory())}/notes"
        if who == "celery":
            redis = RedisServer()
            redis.start()
            stack.callback(redis.kill)
            env |= {"BROKER_URL": redis.url, "QUEUE": "mcp"}
        if who == "db_worker":
            # It has tables of its own.
            assert python("manage.py migrate -v 0", env).wait() == 0
        yield stack.enter_context(closing(Site(kind, database, env | more)))


def kill(own: Site, number: int) -> list[Tried]:
    """Let tasks be in each state, kill who runs them, and see what they become."""
    again = bool(number % 2)
    parked = [own.begin("parked", rerun=each) for each in (False, True)]
    wait_until(lambda: [*own.states().values()].count("parked") == 2)
    runs, ends = own.begin("running", rerun=again), own.begin("ending", rerun=not again)
    others = [
        own.begin("running", rerun=False, seconds=10)
        for _ in range(2 * (len(own.webs) - 1))
    ]
    wait_until(lambda: all(own.notes("start", each) for each in (runs, ends, *others)))
    # No process has a place for these.
    tasks = [own.begin("waiting", rerun=each) for each in (False, True)]
    tasks += [runs, ends, *parked]
    own.may_end.touch()
    wait_until(lambda: own.notes("end", ends), look_s=0.001)
    # It may be about to return, on its way to the row, or there.
    time.sleep(number % 10 * 3 / 1000)
    pids = {pid for each in (runs, ends) for pid, _ in own.notes("start", each)}
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    since = dict.fromkeys(tasks, time.time())
    # A last statement may still be on its way.
    time.sleep(0.1)
    states = own.states()
    own.replace(pids)
    for each in parked:
        since[each] = time.time()
        own.ask("tasks/update", taskId=each, inputResponses=YES)
    with ThreadPoolExecutor(len(tasks)) as pool:
        endings = list(pool.map(own.ending, tasks))
    own.may_end.unlink()
    # Only now: what has ended must not start again, either.
    return [
        own.judge(each, number, states[each], since[each], ending)
        for each, ending in zip(tasks, endings, strict=True)
    ]


def deploy(own: Site, deploys: int) -> list[Tried]:
    """Restart each process in turn under load; see what tasks become."""
    stopped, places, number = Event(), len(own.runners), 0

    def load(client: int) -> None:
        while not stopped.is_set():
            rerun, seconds = bool(client % 2), (client + 1) / 2
            own.ending(own.begin("running", rerun=rerun, seconds=seconds))

    with ThreadPoolExecutor(LOADS) as pool:
        loads = [pool.submit(load, client) for client in range(LOADS)]
        try:
            for number in range(deploys * places):
                long = own.begin("running", rerun=True)
                wait_until(partial(own.notes, "start", long))
                own.restart(number % places)
        finally:
            stopped.set()
        for each in loads:
            each.result()
    # Of some the client got no id.
    wait_until(lambda: set(own.states().values()) == {"ended"})
    return [
        own.judge(each, min(after, number), "deployed", since, own.ending(each))
        for each, (_, after, since) in own.begun.items()
    ]
