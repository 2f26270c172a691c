"""A client in the process whose calls are dry runs, and what they leave behind."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from django.apps import apps
from django.db import connection, connections, transaction
from django.db.models import Model

from mcp_app import SyncContext, models
from mcp_app.interface.principal import Principal
from mcp_app.invalidation.compaction import compact
from mcp_app.process.runtime import Process
from mcp_app.transports.stdio.connection import Connection
from mcp_app.workbench.trying.dry_run import DryRunUserCode
from mcp_app.workbench.trying.dry_run_outcome import DryRunOutcome
from tests.drill.models import Ledger
from tests.scripting import STATELESS, Play
from tests.serving import PATIENCE_S

Message = dict[str, Any]
Script = Callable[[Any], Any]

ALIASES: Final = ("default", "archive")
PERSON: Final = Principal(kind="user", user_id="7", permissions=frozenset())
ABLE: Final[Message] = {"elicitation": {}, "roots": {}, "sampling": {}}
META: Final[Message] = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": ABLE,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
OF_PROCESSES: Final = frozenset(
    {models.Call, models.CallStatistic, models.CallWriter, models.Worker}
)
"""What is written beside calls, at any time."""
OF_CALLS: Final = (models.Once, models.Change, models.Topic)


class Line:
    """A connection to the server of scripted tools, with what came from there."""

    def __init__(self, process: Process) -> None:
        self.connection = Connection(process, "private", PERSON, self._came)
        self.messages: asyncio.Queue[Message] = asyncio.Queue()

    def _came(self, data: bytes) -> None:
        self.messages.put_nowait(json.loads(data))

    async def send(self, **message: Any) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}).encode()
        await self.connection.take_line(line, time.monotonic())

    async def next(self) -> Message:
        async with asyncio.timeout(PATIENCE_S):
            return await self.messages.get()

    async def initialize(self, version: str) -> None:
        client = {"name": "test", "version": "1"}
        params = {
            "protocolVersion": version,
            "capabilities": ABLE,
            "clientInfo": client,
        }
        await self.send(method="initialize", params=params, id="hello")
        assert "result" in await self.next()
        await self.send(method="notifications/initialized")


class DryRuns:
    """Calls scripted tools in dry runs; `outcome` is that of the last one."""

    def __init__(
        self, process: Process, play: Play, *, in_earnest: bool = False
    ) -> None:
        self._in_earnest = in_earnest
        self._process = process
        self._adapters = process.adapters
        self._play = play
        self.line: Line | None = None
        self.dry_run = DryRunUserCode(self._adapters.user_code, self._adapters.limits)

    @property
    def outcome(self) -> DryRunOutcome:
        return self.dry_run.outcome

    async def __call__(
        self,
        tool: str,
        script: Script,
        *,
        version: str = STATELESS,
        answers: Sequence[Message] = (),
    ) -> Message:
        """Call a tool, answer its questions in order, and return its answer."""
        given = iter(answers)
        params = self._play.params(tool, script)
        if version != STATELESS:
            return await self._in_session(version, params, given)
        params["_meta"] = META
        while True:
            line = await self.begin(params)
            answer = await line.next()
            result = answer.get("result", {})
            if result.get("resultType") != "input_required":
                return answer
            asked = result["inputRequests"]
            params["inputResponses"] = {key: next(given) for key in asked}
            params["requestState"] = result["requestState"]

    async def begin(self, params: Message, version: str = STATELESS) -> Line:
        self.dry_run = DryRunUserCode(self._adapters.user_code, self._adapters.limits)
        if not self._in_earnest:
            self._process.adapters = self.dry_run.adapters_for_trial(self._adapters)
        try:
            self.line = line = Line(self._process)
        finally:
            self._process.adapters = self._adapters
        if version != STATELESS:
            await line.initialize(version)
        await line.send(method="tools/call", params=params, id=1)
        return line

    async def _in_session(self, version: str, params: Message, given: Any) -> Message:
        before = [*self._process.listeners]
        line = await self.begin(params, version)
        while "method" in (message := await line.next()):
            if "id" in message:
                await line.send(id=message["id"], result=next(given))
        for listener in [*self._process.listeners]:
            if listener not in before:
                listener.end()
        return message


def all_rows() -> Mapping[str, Sequence[Any]]:
    """Return the rows of all tables of both databases, but what processes write."""
    found = apps.get_models(include_auto_created=True)
    return _rows([each for each in found if each not in OF_PROCESSES])


def rows_of_code() -> Mapping[str, Sequence[Any]]:
    """Return the rows of tables to which the code of tests may write."""
    return _rows([*apps.get_app_config("drill").get_models(), *OF_CALLS])


def _rows(tables: Sequence[type[Model]]) -> Mapping[str, Sequence[Any]]:
    # A process does so at any time, in the middle of a slow test, too.
    compact()
    return {
        f"{alias}.{model.__name__}": [
            *model._base_manager.using(alias).order_by("pk").values_list()
        ]
        for alias in ALIASES
        for model in tables
    }


def close_all() -> None:
    for each in connections.all(initialized_only=True):
        each.close()


def said(answer: Message) -> str:
    return str(answer["result"]["content"][0]["text"])


def failed(answer: Message) -> bool:
    return bool(answer["result"].get("isError"))


def enter(key: str = "line", alias: str = "default") -> None:
    Ledger.objects.using(alias).create(key=key, worker="a dry run")


def lines() -> int:
    """How many rows are committed, on both databases; erases them."""
    there = [
        Ledger.objects.using(alias).filter(worker="a dry run") for alias in ALIASES
    ]
    number = sum(rows.count() for rows in there)
    for rows in there:
        rows.delete()
    return number


def execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for each in statements:
            cursor.execute(each)


def durable() -> None:
    with transaction.atomic(durable=True):
        enter()


def writing(ctx: SyncContext) -> str:
    for alias in ALIASES:
        enter(alias=alias)
        with transaction.atomic(using=alias):
            enter(alias=alias)
        Ledger.objects.using(alias).filter(key="line").update(key="other")
        callback = partial(ctx.log, "error", "A callback ran.")
        transaction.on_commit(callback, using=alias)
    ctx.changed("tools")
    ctx.changed("shop://orders")
    ctx.changed("tools")
    return f"{Ledger.objects.filter(key='other').count()} lines"
