"""Calls of another site as clients make them, and as who makes one is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from pytest_django import DjangoDbBlocker, Settings

from mcp_app.catalog.findings import Finding
from mcp_app.egress.client import close_connections
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
    ToolHints,
)
from mcp_app.interface.principal import AccessRequest
from mcp_app.kinds import findings_with_kind, serving_problems
from mcp_app.kinds.http.kind import HttpKind
from mcp_app.models import PublishedRow, Resource, ResourceTemplate, Tool
from mcp_app.process.runtime import Process
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server import invocation
from mcp_app.workbench.overview import read_paces
from tests.audit.reading import kept
from tests.egress.conftest import peer
from tests.egress.peer import Peer, Received, answer
from tests.published import published
from tests.scripting import STATEFUL, STATELESS
from tests.serving import Connect

__all__ = ["peer"]

SECRET: Final = "canary-in-a-header"
TICKET: Final[JsonObject] = {
    "site": "peer",
    "method": "POST",
    "path": "/tickets/{{queue}}",
    "body": {"json": {"subject": "{{subject}}", "priority": "{{priority}}"}},
    "take": "ticket",
    "keep": ["id"],
    "errors": {"404": "There is no queue {{queue}}."},
}
PARAMETERS: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "queue": {"type": "string"},
        "subject": {"type": ["string", "null"], "default": None},
        "priority": {"type": "integer", "default": 3},
    },
    "required": ["queue"],
}
SHOW: Final[JsonObject] = {"site": "peer", "path": "/shown"}


def rows() -> list[PublishedRow]:
    made: JsonObject = {"kind": "http", "tags": "private"}
    show: JsonObject = {"config": json.dumps(SHOW), **made}
    one = {"config": json.dumps({"site": "peer", "path": "/tickets/{{id}}"}), **made}
    ticket = {"config": json.dumps(TICKET), "input_schema": json.dumps(PARAMETERS)}
    return [
        published(Tool(name="create_ticket", **ticket, **made)),
        published(Tool(name="show", **show)),
        published(Resource(name="rates", uri="rates://today", **show)),
        published(ResourceTemplate(name="ticket", uri_template="ticket://{id}", **one)),
    ]


@pytest.fixture
def mcp(peer: Peer) -> JsonObject:
    """Settings with the other site."""
    headers = {"X-Partner": SECRET}
    return {"HTTP": peer.settings(secret_headers=headers, connections=2)}


@pytest.fixture
def served(
    peer: Peer, process: Process, django_db_blocker: DjangoDbBlocker
) -> Iterator[Peer]:
    """The other site, and what staff made of it."""
    with django_db_blocker.unblock():
        made = rows()
        try:
            yield peer
        finally:
            for row in made:
                row.delete()


@pytest.fixture
async def ask(served: Peer, connect: Connect) -> AsyncIterator[Any]:
    """Make a request at the server “private”."""

    async def ask(method: str, version: str = STATELESS, **params: Any) -> Any:
        headers = {"x-user": "1"}
        client = await connect(version, path="/mcp/private", headers=headers)
        return await client.request(method, params)

    yield ask
    await close_connections()


async def called(ask: Any, name: str = "show", **arguments: Any) -> Any:
    return (await ask("tools/call", name=name, arguments=arguments)).result


async def refused(ask: Any, name: str = "show", **arguments: Any) -> str:
    result = await called(ask, name, **arguments)
    assert result["isError"] is True
    return str(result["content"][0]["text"])


async def logged(process: Process) -> tuple[str, str]:
    """Return outcome and error of the only call."""
    (row,) = await kept(process)
    return row.outcome, row.error


@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
async def test_a_call(ask: Any, served: Peer, version: str) -> None:
    served.send = answer({"ticket": {"id": 7, "secret": 1}}, 201)
    arguments = {"queue": "a b", "subject": "Cake"}
    params = {"name": "create_ticket", "arguments": arguments}
    result = (await ask("tools/call", version, **params)).result
    assert result["structuredContent"] == {"id": 7}
    assert json.loads(result["content"][0]["text"]) == {"id": 7}
    assert result["_meta"]["untrusted"] is True
    (sent,) = served.received
    assert (sent.method, sent.target) == ("POST", "/api/tickets/a%20b")
    # What was not given has its default.
    assert sent.json == {"subject": "Cake", "priority": 3}
    assert sent.header("X-Partner") == [SECRET]
    assert not sent.header("X-User")


@pytest.mark.parametrize(
    ("sent", "content"),
    [
        (answer("hello", media_type="text/plain"), {"type": "text", "text": "hello"}),
        (answer("", status=204, media_type=""), {"type": "text", "text": "Done."}),
        (
            answer(b"PNG", media_type="image/png"),
            {"type": "image", "data": "UE5H", "mimeType": "image/png"},
        ),
        (
            answer(b"OGG", media_type="audio/ogg"),
            {"type": "audio", "data": "T0dH", "mimeType": "audio/ogg"},
        ),
    ],
)
async def test_what_is_no_json(
    ask: Any, served: Peer, sent: bytes, content: JsonObject
) -> None:
    served.send = sent
    result = await called(ask)
    assert result["content"] == [content]
    assert "structuredContent" not in result


async def test_a_list_is_a_result(ask: Any, served: Peer) -> None:
    served.send = answer([1, 2])
    assert (await called(ask))["structuredContent"] == {"result": [1, 2]}


NO_KEY: Final = "Help desk did not accept this site's key. Do not retry; tell the user."


@pytest.mark.parametrize(
    ("sent", "said", "outcome", "detail"),
    [
        (answer(status=401), NO_KEY, Outcome.OTHER_SITE, f"401: {NO_KEY}"),
        (
            answer(b"%PDF", media_type="application/pdf"),
            "Help desk sent application/pdf, which cannot be shown.",
            Outcome.SHAPE,
            "Help desk sent application/pdf, which cannot be shown.",
        ),
        (
            answer("{"),
            "The answer of Help desk is no JSON that can be read.",
            Outcome.SHAPE,
            "The answer of Help desk is no JSON that can be read.",
        ),
        (
            answer("", Content_Encoding="br"),
            "The answer of Help desk cannot be read.",
            Outcome.SHAPE,
            "The answer has the Content-Encoding 'br'.",
        ),
        (
            answer(b"a" * (4 * 2**20 + 1)),
            "The answer is larger than 4 MiB.",
            Outcome.TOO_LARGE,
            "The answer is larger than 4,194,304 bytes.",
        ),
        (
            b"nonsense\r\n\r\n",
            "Help desk cannot be reached right now.",
            Outcome.OTHER_SITE,
            "RemoteProtocolError",
        ),
    ],
)
async def test_failures(
    ask: Any,
    served: Peer,
    process: Process,
    sent: bytes,
    said: str,
    outcome: Outcome,
    detail: str,
) -> None:
    served.send = sent
    assert await refused(ask) == said
    assert await logged(process) == (outcome, detail)


async def test_what_may_have_happened(
    ask: Any, served: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    async def send(_request: Received, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    served.send = send
    said = await refused(ask, "create_ticket", queue="a", subject="b")
    assert said == (
        "Help desk cannot be reached right now. It may have happened all the same."
    )
    assert len(served.received) == 1
    assert SECRET not in caplog.text


async def test_what_the_guard_refuses(ask: Any, served: Peer, process: Process) -> None:
    said = await refused(ask, "create_ticket", queue="..", subject="b")
    assert said == "This call was refused by this site's rules."
    assert await logged(process) == (
        Outcome.EGRESS,
        "A segment of the path is “.” or “..”.",
    )
    assert not served.received


async def test_null_is_sent(ask: Any, served: Peer) -> None:
    """Only what the caller leaves out is left out."""
    served.send = answer({"ticket": {"id": 7}})
    await called(ask, "create_ticket", queue="a")
    await called(ask, "create_ticket", queue="a", subject=None)
    left_out = {"priority": 3}
    assert [each.json for each in served.received] == [
        left_out,
        {"subject": None, **left_out},
    ]


A_SEGMENT: Final = (
    "The value of {} must be one segment of the path, such as 17 or a.txt: no slash and"
    " no backslash, not even as %2F or %5C."
)


async def test_a_value_with_a_slash(ask: Any, served: Peer, process: Process) -> None:
    """It would reach another address of the site, with the site's key."""
    said = await refused(ask, "create_ticket", queue="1/keys", subject="b")
    assert said == A_SEGMENT.format("queue")
    assert await logged(process) == (Outcome.ARGUMENTS, said)
    assert not served.received


async def test_what_callers_ask_wrongly_makes_nothing_fail(
    ask: Any, served: Peer, process: Process
) -> None:
    async def called_often(count: int, status: int, **values: object) -> list[str]:
        served.send = answer({"ticket": {}}, status=status)
        for _ in range(count):
            await called(ask, "create_ticket", **values)
        await kept(process)
        found = await sync_to_async(read_paces)(timezone.now())
        return [f"{each.name} {each.failed}/{each.calls}" for each in found.failing]

    assert await called_often(20, 200, queue=5) == []
    assert await called_often(20, 200, queue="1/keys") == []
    assert await called_often(5, 200, queue="a") == []
    assert await called_often(5, 503, queue="a") == ["create_ticket 5/10"]
    assert await called_often(20, 404, queue="a") == []
    assert {row.outcome for row in await kept(process)} == {
        *(Outcome.ARGUMENTS, Outcome.ANSWERED, Outcome.OTHER_SITE, Outcome.TOOL_ERROR)
    }


async def test_an_address_with_a_slash(ask: Any, served: Peer) -> None:
    error = (await read(ask, "ticket://1%2Fkeys")).error
    assert (error["code"], error["message"]) == (-32602, A_SEGMENT.format("id"))
    assert not served.received


async def test_own_words_for_a_refusal(ask: Any, served: Peer) -> None:
    served.send = answer(status=404)
    said = await refused(ask, "create_ticket", queue="cakes", subject="b")
    assert said == "There is no queue cakes."


async def test_secrets_do_not_come_back(ask: Any, served: Peer) -> None:
    async def send(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answer({"headers": request.headers}))

    served.send = send
    result = await called(ask)
    assert SECRET not in json.dumps(result)
    assert ["X-Partner", "•••"] in result["structuredContent"]["headers"]


async def read(ask: Any, uri: str, version: str = STATELESS) -> Any:
    return await ask("resources/read", version, uri=uri)


async def test_resources(ask: Any, served: Peer) -> None:
    served.send = answer({"usd": 1.1})
    (contents,) = (await read(ask, "rates://today")).result["contents"]
    assert json.loads(contents["text"]) == {"usd": 1.1}
    assert contents["mimeType"] == "application/json"
    served.send = answer(b"%PDF", media_type="application/pdf")
    (contents,) = (await read(ask, "rates://today")).result["contents"]
    assert contents["blob"] == "JVBERg=="


async def test_templates(ask: Any, served: Peer) -> None:
    served.send = answer("A ticket.", media_type="text/plain")
    (contents,) = (await read(ask, "ticket://5")).result["contents"]
    assert contents["text"] == "A ticket."
    assert served.received[0].target == "/api/tickets/5"


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [(404, -32602, "Resource not found"), (500, -32603, "Help desk failed (500).")],
)
async def test_resources_that_cannot_be_read(
    ask: Any, served: Peer, process: Process, status: int, code: int, said: str
) -> None:
    served.send = answer(status=status)
    error = (await read(ask, "ticket://5")).error
    assert (error["code"], error["message"]) == (code, said)
    expected = Outcome.UNKNOWN if status == 404 else Outcome.OTHER_SITE
    assert (await logged(process))[0] == expected


async def test_a_site_that_hangs_holds_its_own_places_only(
    ask: Any, served: Peer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two calls wait, a third is refused, and another tool answers meanwhile."""
    settings.MCP = {**settings.MCP, "HTTP": served.settings(connections=4)}
    monkeypatch.setattr(invocation, "GATE_S", 0.1)
    go_on = asyncio.Event()

    async def send(_request: Received, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        writer.write(answer({}))

    served.send = send
    hanging = [asyncio.create_task(called(ask)) for _ in range(2)]
    while len(served.received) < 2:
        await asyncio.sleep(0.001)
    outcome = await ask("tools/call", name="show", arguments={})
    assert outcome.status == 503
    assert (await ask("tools/list")).result["tools"]
    go_on.set()
    results = await asyncio.gather(*hanging)
    assert [each["structuredContent"] for each in results] == [{}, {}]


asked: list[AccessRequest] = []


def own_headers(request: AccessRequest) -> dict[str, str]:
    asked.append(request)
    return {"X-Own": f"key-of-{request.principal.user_name}"}


async def test_headers_of_the_caller(
    ask: Any, served: Peer, settings: Settings
) -> None:
    path = f"{__name__}.own_headers"
    settings.MCP = {**settings.MCP, "HTTP": served.settings(secret_headers=path)}
    served.send = answer({})
    await called(ask)
    assert served.received[0].header("X-Own") == ["key-of-1"]
    assert (asked[-1].name, asked[-1].server) == ("show", "private")


# -- who makes one ---------------------------------------------------------------


@pytest.fixture
def helpdesk(settings: Settings) -> Callable[..., None]:
    def configure(**options: Any) -> None:
        site = {"title": "Help desk", "url": "https://help.example.com/api", **options}
        settings.MCP = {"HTTP": {"peer": site}}

    configure()
    return configure


def tool(hints: ToolHints | None = None, **members: Any) -> ToolDefinition:
    return ToolDefinition(
        name="ticket",
        description="Creates a ticket.",
        input_schema=PARAMETERS,
        hints=hints or ToolHints(),
        **members,
    )


def told(definition: Definition, config: JsonObject) -> list[str]:
    return [each.message for each in serving_problems(definition, "http", config)]


RESOURCE: Final = ResourceDefinition(name="r", uri="rates://today")
TEMPLATE: Final = ResourceTemplateDefinition(name="t", uri_template="ticket://{id}")


def test_what_can_be_made(helpdesk: Any) -> None:
    assert told(tool(), TICKET) == []
    assert told(RESOURCE, SHOW) == []
    assert told(TEMPLATE, {"site": "peer", "path": "/{{id}}"}) == []


@pytest.mark.parametrize(
    ("definition", "config", "sentence"),
    [
        (tool(), {}, "Choose a site."),
        (tool(), {**TICKET, "url": "x"}, "Additional properties"),
        (tool(), {**TICKET, "path": "/{{no}}"}, "{{no}} is not a parameter."),
        (RESOURCE, {**SHOW, "method": "POST"}, "A resource is read with GET."),
        (RESOURCE, {"site": "peer", "path": "/{{id}}"}, "There are no parameters."),
        (TEMPLATE, {"site": "peer", "path": "/{{no}}"}, "{{no}} is not a variable."),
        (PromptDefinition(name="p"), SHOW, "is not for this kind of definition"),
    ],
)
def test_what_cannot_be_made(
    helpdesk: Any, definition: Definition, config: JsonObject, sentence: str
) -> None:
    assert any(sentence in each for each in told(definition, config))


def completed(definition: Any, config: JsonObject = SHOW) -> Any:
    return HttpKind().complete_safely(definition, config)


def test_what_follows_from_a_config(helpdesk: Any) -> None:
    assert completed(tool()).hints == ToolHints(open_world=True)
    public = ResourceDefinition(name="r", uri="rates://today", public=True)
    assert completed(public).public
    helpdesk(secret_headers=f"{__name__}.own_headers")
    # A cache would show others what is for one caller.
    assert not completed(public).public


def test_what_a_call_changes(helpdesk: Any) -> None:
    site = HttpKind()
    changed = site.changes_elsewhere(tool(ToolHints(read_only=True)), TICKET)
    assert changed is not None
    assert changed.startswith("POST http")
    assert changed.endswith("/tickets/{{queue}}")
    assert site.changes_elsewhere(tool(), SHOW) == ""
    assert site.changes_elsewhere(RESOURCE, SHOW) == ""


def test_a_developer_must_add_a_site(settings: Settings) -> None:
    settings.MCP = {}
    missing = HttpKind().missing()
    assert missing is not None
    assert 'MCP = {"HTTP"' in missing.line
    settings.MCP = {"HTTP": {"peer": {"url": "https://peer.example"}}}
    assert HttpKind().missing() is None


def advice_of(definition: Definition, config: JsonObject) -> list[Finding]:
    rules = {"hints-contradict", "hints-doubtful", "parameter-unused", "shared-key"}
    findings = findings_with_kind(definition, "http", config)
    return [each for each in findings if each.rule in rules]


@pytest.mark.parametrize(
    ("method", "rule"),
    [
        ("GET", None),
        ("POST", "hints-doubtful"),
        ("PUT", "hints-contradict"),
        ("DELETE", "hints-contradict"),
    ],
)
def test_a_tool_that_only_reads(helpdesk: Any, method: str, rule: str | None) -> None:
    config = {**TICKET, "method": method}
    if method == "GET":
        config = {"site": "peer", "path": "/{{queue}}/{{subject}}/{{priority}}"}
    found = advice_of(tool(ToolHints(read_only=True)), config)
    assert [each.rule for each in found] == ([rule] if rule else [])


def test_a_parameter_that_goes_nowhere(helpdesk: Any) -> None:
    found = advice_of(tool(), {"site": "peer", "path": "/{{queue}}/{{subject}}"})
    assert [each.message for each in found] == [
        "The parameter priority is not used anywhere. Use it in the call, or remove it."
    ]


def test_a_key_that_everybody_uses(helpdesk: Any) -> None:
    assert advice_of(tool(), TICKET) == []
    helpdesk(secret_headers={"X-Partner": SECRET})
    (found,) = advice_of(tool(), TICKET)
    assert found.rule == "shared-key"
    assert "acts at Help desk with this site's key" in found.message
    assert SECRET not in found.message
    helpdesk(secret_headers=f"{__name__}.own_headers")
    assert advice_of(tool(), TICKET) == []
