"""Tasks with the TypeScript SDK and fastmcp; their tools with the Python SDK."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pytest
from fastmcp.exceptions import ToolError

# With it each client of fastmcp takes tasks.
from fastmcp_tasks import call_tool_task

from tests.clients.facts import STATEFUL, STATELESS
from tests.clients.node import report_of
from tests.clients.person import Person, answer
from tests.clients.test_fastmcp import Connection, client, said, transport
from tests.clients.test_python_sdk import Connect, connect, spoken
from tests.drill.running import running

__all__ = ["client", "connect", "transport"]

WAIT_S: Final = 2


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    limits = f'{{"task_wait": {WAIT_S}}}'
    with running("uvicorn", {"TASK_TOOLS": "1", "MCP_LIMITS": limits}) as url:
        yield url


def test_the_typescript_sdk(endpoint: str) -> None:
    report = report_of("tasks_v1.mjs", endpoint)
    assert report["support"]["failing_job"] == "required"
    assert report["support"]["slow_compute"] == "optional"
    assert "greet" not in report["support"]
    assert report["computed"] == ["working", "completed", "Computed it."]
    asked = ["working", "input_required", "Deleted old.txt."]
    assert report["confirmed"] == asked
    assert report["asked"] == ["Delete old.txt?"]
    assert len(report["waited"]) > 2
    assert all("It still runs" in each for each in report["waited"][:-1])
    assert report["waited"][-1] == "Computed later."
    assert report["failed"] == ["working", "failed", "an error"]


@pytest.mark.parametrize("era", [STATELESS])
async def test_fastmcp(client: Connection, person: Person) -> None:
    works = {"seconds": 1.5, "label": "it"}
    task = await call_tool_task(client, "slow_compute", works)
    assert task.create_result.status == "working"
    ended = await task.wait()
    assert (ended.status, bool(ended.status_message)) == ("completed", True)
    assert said((await task.result()).content) == "Computed it."
    person.answers = [answer(confirm=True), answer(confirm=True)]
    asking = await call_tool_task(client, "confirm_delete", {"filename": "a.txt"})
    await asking.wait(state="input_required")
    assert said((await asking.result()).content) == "Deleted a.txt."
    lasting = await call_tool_task(client, "slow_compute", {"seconds": 600})
    await lasting.cancel()
    assert (await lasting.wait()).status == "cancelled"
    # Who only calls does not see that there are tasks.
    result = await client.call_tool("confirm_delete", {"filename": "b.txt"})
    assert said(result.content) == "Deleted b.txt."
    with pytest.raises(ToolError, match=r"^The job failed\.$"):
        await client.call_tool("failing_job")
    asked = [question.message for question in person.asked]
    assert asked == ["Delete a.txt?", "Delete b.txt?"]


@pytest.mark.parametrize("era", [STATEFUL, STATELESS])
async def test_a_client_without_tasks(connect: Connect, person: Person) -> None:
    person.answers = [answer(confirm=True)]
    async with connect() as client:
        soon = await client.call_tool("slow_compute", {"seconds": 0.1, "label": "soon"})
        assert spoken(soon) == "Computed soon."
        deleted = await client.call_tool("confirm_delete", {"filename": "a.txt"})
        assert spoken(deleted) == "Deleted a.txt."
        works = {"seconds": WAIT_S + 2, "label": "later"}
        first = await client.call_tool("slow_compute", works)
        assert first.is_error is False
        assert first.structured_content == {"still_runs": spoken(first)}
        pattern = r"^It still runs \(.+\)\. .+ with task='(.+)' "
        [task] = re.findall(pattern, spoken(first))
        later = await client.call_tool("get_task_result", {"task": task})
        assert spoken(later) == "Computed later."
    assert [question.message for question in person.asked] == ["Delete a.txt?"]
