"""The test client ends each call, and reads what clients over HTTP read."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from mcp_app.pools.pump import PUMPS
from mcp_app.test import Client
from tests import asgi_client, behaviours
from tests.asgi_client import JsonObject
from tests.drill.models import Ledger
from tests.scripting import STATEFUL, STATELESS
from tests.wire.middleware import WireCheck

CASES: Final[list[tuple[str, JsonObject]]] = [
    ("rows", {}),
    ("rows_of_database", {}),
    ("whoami", {}),
    ("whoami_sync", {}),
    ("reports", {"steps": [1, 2]}),
    ("reports_sync", {"count": 2}),
    ("logs", {}),
    ("logs_sync", {}),
    ("changes", {"what": ["tools"]}),
    ("changes_sync", {"what": "tools"}),
    ("orders", {}),
    ("orders_sync", {}),
    ("steps", {"line": "a"}),
    ("steps_sync", {"line": "b"}),
    ("asks_many", {}),
    ("asks_many_sync", {}),
    ("samples", {"long": True, "tools": True}),
    ("samples_sync", {}),
    ("roots_sync", {}),
    ("withdraw", {"amount": 7}),
    ("withdraw", {"amount": 700}),
    ("fails", {"kind": "tool error"}),
    ("fails_sync", {"kind": "content"}),
    ("hangs", {}),
    ("swallows", {}),
]
ENDS_IN_S: Final = 5
OWN: Final = ("key", "client", "request", "atomic")
"""What differs from one client to another."""


class Behaved(Client):
    _registry = behaviours.registry


def answer(method: str, params: JsonObject) -> JsonObject:
    """Answer over HTTP as the test client below does."""
    if method == "roots/list":
        return {"roots": [{"uri": "file:///here"}]}
    if method == "sampling/createMessage":
        content = {"type": "text", "text": "words"}
        return {"role": "assistant", "content": content, "model": "test"}
    if "url" in params:
        return {"action": "accept"}
    return {"action": "accept", "content": fill_in(params)}


def fill_in(params: JsonObject, number: int = 1) -> JsonObject:
    """Return a form with this number in each field."""
    properties = params.get("requestedSchema", {}).get("properties", {})
    return {
        name: number if each["type"] == "integer" else f"{number}"
        for name, each in properties.items()
    }


def alike(result: JsonObject) -> object:
    """Return a result without what names its client."""
    found = {name: result.get(name) for name in ("content", "isError")}
    structured = result.get("structuredContent")
    if structured is None:
        return found
    data = structured.get("result", structured)
    for each in data if isinstance(data, list) else [data]:
        if isinstance(each, dict):
            for name in OWN:
                each.pop(name, None)
    return structured


@pytest.mark.parametrize("revision", [STATEFUL, STATELESS])
async def test_each_call_ends_as_over_http(
    application: WireCheck, revision: str
) -> None:
    """With questions that a callable answers, which reads and writes rows."""

    def look(params: JsonObject) -> Any:
        Ledger.objects.get_or_create(key="asked", defaults={"worker": "a test"})
        found = Ledger.objects.filter(key="asked").count()
        return fill_in(params, found)

    answers: dict[str, object] = {
        "elicitation/create": look,
        "sampling/createMessage": lambda params: "words",
        "roots/list": ["file:///here"],
    }
    here = Behaved(revision=revision, answers=answers)
    wire = await asgi_client.Client(application, revision).open()
    for name, arguments in CASES:
        params = {"name": name, "arguments": arguments}
        behaviours.new_stage()
        outcome = await wire.talk("tools/call", params, answer)
        behaviours.new_stage()
        # Steps count their rows, which stay: this test has no transaction.
        await Ledger.objects.filter(key__in="ab").adelete()
        async with asyncio.timeout(ENDS_IN_S):
            if "error" in outcome.answer:
                with pytest.raises(AssertionError, match=outcome.error["message"]):
                    await here.acall(name, **arguments)
                continue
            result = await here.atry_call(name, **arguments)
        assert alike(result.raw) == alike(outcome.result), name


async def find_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


@pytest.mark.django_db
def test_the_thread_keeps_nothing_of_an_async_tool() -> None:
    """Else what it runs later waits, on the loop of the clients, for this thread."""
    Behaved(User.objects.create_user("ida")).call("rows_of_database")
    assert async_to_sync(find_loop)() not in PUMPS
