"""Calls that wait for a person, with official clients and with FastMCP's tasks.

Who decides sits at the admin of the same server.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any, Final, NamedTuple

import httpx2
import pytest
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp_tasks import call_tool_task
from mcp.client.streamable_http import streamable_http_client

from tests.clients.facts import STATEFUL, STATELESS
from tests.clients.guarded import bearer
from tests.clients.node import HERE, MODULES, NODE, report_of
from tests.clients.test_fastmcp import Connection, client, said
from tests.clients.test_python_sdk import Connect, connect, spoken
from tests.drill.piped import database
from tests.drill.programs import Program
from tests.drill.running import THERE, running
from tests.marks import long_cases
from tests.process.operating import Operator
from tests.process.staff import Staff
from tests.tasks.test_approval import TEXTS, TOLD, WAITS

__all__ = ["client", "connect"]

PREPARE: Final = """
from django.contrib.auth.models import User
from mcp_app.models import Server
from tests.published import published
User.objects.create_superuser("admin", password="admin")
User.objects.create_user("ana")
published(Server(slug="guarded", access="token"))
"""
A_DAY_LATER: Final = """
from django.db.models import F
from mcp_app.models import Task
Task.objects.filter(status="approval").update(created_ms=F("created_ms") - 86_400_000)
"""
endings = pytest.mark.parametrize("how", TEXTS)


class Site(NamedTuple):
    url: str
    token: str
    staff: Staff
    operator: Operator

    def end(self, how: str) -> None:
        """Decide the call that waits, cancel its task, or let a day pass."""
        page = self.staff.get("/admin/mcp_app/task/?status__exact=approval").text
        [key] = set(re.findall(r"/admin/mcp_app/task/(\d+)/change/", page))
        if how == "withdraw":
            self.staff.act("mcp_app/task", "cancel_tasks", key)
        elif how == "lapse":
            self.operator.runs(A_DAY_LATER)
            self.operator.types("mcp_prune")
        else:
            sent = {how: "1", "reason": "Ask the\ncustomer first."}
            self.staff.submit(f"/admin/mcp_app/task/{key}/change/", **sent)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    url = f"sqlite:///{database(tmp_path_factory.mktemp('approval'))}"
    given = {"DATABASE_URL": url, "LEDGER": "bound", **THERE}
    given["MCP_LIMITS"] = '{"task_wait": 0.5}'
    with closing(Operator(given)) as operator:
        operator.runs(PREPARE)
        token = operator.token("ana", "approval", "--change")
        with running("uvicorn", given) as url, closing(Staff(url)) as staff:
            yield Site(f"{url}/guarded", token, staff, operator)


@pytest.fixture
async def endpoint(site: Site) -> AsyncIterator[Any]:
    async with httpx2.AsyncClient(headers=bearer(site.token), timeout=120) as http:
        yield streamable_http_client(site.url, http_client=http)


@pytest.fixture
def transport(site: Site) -> StreamableHttpTransport:
    return StreamableHttpTransport(site.url, headers=bearer(site.token))


@endings
@pytest.mark.parametrize("era", [STATELESS, *long_cases(STATEFUL)])
async def test_the_python_sdk(connect: Connect, site: Site, how: str) -> None:
    async with connect() as client:
        told = await client.call_tool("pay", {"amount": 5})
        [task] = re.findall("task='(.+)'", spoken(told))
        assert (spoken(told), told.is_error) == (TOLD.format(task=task), False)
        site.end(how)
        ended = await client.call_tool("get_task_result", {"task": task})
    assert (spoken(ended), ended.is_error) == (TEXTS[how], how != "approve")


@endings
@pytest.mark.long
@pytest.mark.parametrize("era", [STATELESS])
async def test_fastmcp_with_tasks(client: Connection, site: Site, how: str) -> None:
    task = await call_tool_task(client, "pay", {"amount": 5}, raise_on_error=False)
    begun = task.create_result
    assert (begun.status, begun.status_message) == ("working", WAITS)
    await task.cancel() if how == "withdraw" else site.end(how)
    status = (await task.wait()).status
    assert status == ("cancelled" if how == "withdraw" else "completed")
    ended = await task.result()
    assert ended.is_error == (how != "approve")
    # Of one that is cancelled it says so in its own words.
    assert how == "withdraw" or said(ended.content) == TEXTS[how]


@endings
@pytest.mark.long
def test_the_typescript_sdk(site: Site, how: str) -> None:
    def call(tool: str, **given: object) -> tuple[str, bool]:
        sent = (site.url, tool, json.dumps(given), site.token)
        result = report_of("call.mjs", *sent)["result"]
        return result["content"][0]["text"], result.get("isError", False)

    told, _ = call("pay", amount=5)
    [task] = re.findall("task='(.+)'", told)
    assert told == TOLD.format(task=task)
    site.end(how)
    assert call("get_task_result", task=task) == (TEXTS[how], how != "approve")


@endings
@pytest.mark.long
@pytest.mark.skipif(not MODULES.is_dir(), reason="`make node` installs them.")
def test_the_typescript_sdk_with_tasks(site: Site, how: str) -> None:
    command = [str(NODE), str(HERE / "approval.mjs"), site.url, site.token, how]
    with Program(command, pipes=True) as program:
        assert json.loads(program.hear(60)) == ["working", WAITS]
        if how != "withdraw":
            site.end(how)
        status, text = json.loads(program.hear(60))
    ends = {"approve": "completed", "withdraw": "cancelled"}
    assert status == ends.get(how, "failed")
    assert text.removeprefix("MCP error -32603: ") == TEXTS[how]
