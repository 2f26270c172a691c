"""What the stateful revisions demand of calls, by the ids of their requirements."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

import pytest

from mcp_app.interface.context import Client as KnownClient
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.interface.errors import ClientCannot
from mcp_app.interface.questions import (
    Accepted,
    Completion,
    Elicit,
    ElicitUrl,
    Question,
    Root,
    Roots,
    Sample,
)
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import LATEST, REVISIONS, STATEFUL
from mcp_app.server import client_logging
from mcp_app.server.context import current_call
from mcp_app.server.handlers import definitions
from mcp_app.server.questions import PreparedQuestion, prepare_question, sampled_block
from mcp_app.streams import session_store
from mcp_app.streams.open_session import note_handshakes
from tests.asgi_client import Client, JsonObject, Visit
from tests.behaviours import Stage, new_stage
from tests.marks import STATEFUL_NEWEST_FIRST
from tests.wire.middleware import WireCheck

NEWEST: Final = "2025-11-25"
ASKING: Final = ("2025-06-18", NEWEST)
CANCELLED: Final = "notifications/cancelled"


@pytest.fixture
def scene() -> Stage:
    return new_stage()


async def question(visit: Visit, method: str = "elicitation/create") -> JsonObject:
    asked = await visit.message()
    assert asked is not None
    assert asked["method"] == method
    return asked


# -- S-TASKS-019: without the capability nobody is asked for a task -----------------


@pytest.mark.parametrize("version", [NEWEST])
async def test_a_server_without_tasks_ignores_that_one_is_wanted(
    client: Client,
) -> None:
    called = await client.request("tools/call", {"name": "weather", "task": {}})
    assert called.result["structuredContent"]["words"] == "mild here"
    prompt = {"name": "test_simple_prompt", "task": {"ttl": 1}}
    assert (await client.request("prompts/get", prompt)).result["messages"]


# -- S-LIFE-032, S-CANCEL-002: a question that nobody waits for is cancelled -------


@pytest.mark.parametrize("version", ASKING)
async def test_a_question_past_its_time_is_cancelled(client: Client) -> None:
    visit = client.begin("tools/call", {"name": "orders_soon"})
    asked = await question(visit)
    cancelled, answer = await visit.messages()
    assert cancelled["method"] == CANCELLED
    assert cancelled["params"]["requestId"] == asked["id"]
    assert answer["result"]["isError"] is True
    # A late answer is known, and does nothing.
    assert (await client.reply(asked["id"], {"action": "decline"})).status == 202
    assert (await client.reply("question-0", {"action": "decline"})).status == 400


async def test_progress_of_the_client_buys_no_time(stateful: Client) -> None:
    visit = stateful.begin("tools/call", {"name": "orders_soon"})
    asked = await question(visit)
    for step in range(20):
        progress = {"progressToken": asked["id"], "progress": step}
        assert (await stateful.notify("notifications/progress", progress)).status == 202
    cancelled, answer = await visit.messages()
    assert cancelled["method"] == CANCELLED
    assert answer["result"]["isError"] is True


async def test_an_answered_question_is_not_cancelled(stateful: Client) -> None:
    visit = stateful.begin("tools/call", {"name": "orders"})
    asked = await question(visit)
    await stateful.reply(asked["id"], {"action": "decline"})
    (answer,) = await visit.messages()
    assert answer["result"]["content"][0]["text"] == "declined"


async def test_the_other_questions_are_cancelled_where_one_failed(
    stateful: Client,
) -> None:
    visit = stateful.begin("tools/call", {"name": "asks_many"})
    asked = [await visit.message() for _ in range(4)]
    first, *others = [each["id"] for each in asked if each is not None]
    await stateful.reply(first, {"error": {"code": -1, "message": "no"}})
    *cancelled, answer = await visit.messages()
    assert [each["params"]["requestId"] for each in cancelled] == others
    assert answer["result"]["isError"] is True


# -- S-LIFE-009: no question before the client has finished the handshake ----------


async def opened_only(application: WireCheck) -> Client:
    client = Client(application, NEWEST)
    client.session = (await client.sent(client.initialize())).headers["mcp-session-id"]
    return client


async def test_questions_wait_for_the_handshake(
    application: WireCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_store, "HANDSHAKE_LOOK_S", 0.01)
    client = await opened_only(application)
    visit = client.begin("tools/call", {"name": "orders"})
    await asyncio.sleep(0.1)
    await visit.quiet()
    assert not visit.status
    await client.notify("notifications/initialized")
    asked = await question(visit)
    await client.reply(asked["id"], {"action": "cancel"})
    await visit.body()


async def test_the_handshake_may_end_in_another_process(
    application: WireCheck, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_store, "HANDSHAKE_LOOK_S", 0.01)
    client = await opened_only(application)
    (session,) = process.sessions._cached_sessions.values()
    visit = client.begin("tools/call", {"name": "orders"})
    await visit.quiet()
    await writer.run(note_handshakes, [session.pk])
    asked = await question(visit)
    await client.reply(asked["id"], {"action": "cancel"})
    await visit.body()


async def test_questions_do_not_wait_for_ever(
    application: WireCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_store, "HANDSHAKE_S", 0.05)
    client = await opened_only(application)
    visit = client.begin("tools/call", {"name": "orders"})
    asked = await question(visit)
    await client.reply(asked["id"], {"action": "cancel"})
    await visit.body()


# -- what is asked ----------------------------------------------------------------


def prepared(
    asked: Question[Any], capabilities: JsonObject, version: str = NEWEST
) -> PreparedQuestion:
    known = KnownClient(capabilities=capabilities)
    return prepare_question("key", asked, REVISIONS[version], known)


URLS: Final[JsonObject] = {"elicitation": {"url": {}}}
SAMPLING: Final[JsonObject] = {"sampling": {"tools": {}}}
FORM: Final[JsonObject] = {"type": "object", "properties": {"note": {"type": "string"}}}


@pytest.mark.parametrize(
    "url",
    [
        *("", "pay", "/pay", "https://", "https://[", "https://exa mple.org/"),
        *("javascript:alert(1)", "file:///etc/passwd"),
        *("https://ada:secret@example.org/", "http://example.org/"),
    ],
)
def test_unsafe_urls_are_not_asked_for(url: str) -> None:
    """S-ELICIT-022, S-ELICIT-046, S-ELICIT-049."""
    with pytest.raises(ValueError, match="URL") as refused:
        prepared(ElicitUrl("Go there.", url), URLS)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("url", ["https://example.org/a?b=c", "http://127.0.0.1:8000/"])
def test_every_visit_has_an_id_of_its_own(url: str) -> None:
    """S-ELICIT-021, S-ELICIT-023."""
    first, second = (prepared(ElicitUrl("Go there.", url), URLS) for _ in range(2))
    assert first.params["url"] == url
    assert first.params["elicitationId"] != second.params["elicitationId"]


def test_modes_are_those_of_the_revision() -> None:
    """S-ELICIT-004 to S-ELICIT-007: 2025-06-18 has no modes."""
    with pytest.raises(ClientCannot, match=r"'elicitation\.form'"):
        prepared(Elicit("?", FORM), URLS)
    assert "mode" not in prepared(Elicit("?", FORM), URLS, "2025-06-18").params
    assert prepared(Elicit("?", FORM), {"elicitation": {}}).params["mode"] == "form"


def test_a_form_may_be_accepted_without_content() -> None:
    """S-ELICIT-017: nothing of this form is required."""
    asked = prepared(Elicit("?", FORM), {"elicitation": {}})
    assert asked.parse({"action": "accept"}) == Accepted({})


@pytest.mark.parametrize(
    "asked",
    [
        Sample("?", max_tokens=1, tools=[ToolDefinition(name="find")]),
        Sample("?", max_tokens=1, tool_choice="none"),
    ],
)
def test_tools_are_offered_only_to_those_that_know_them(asked: Sample) -> None:
    """S-SAMPLING-011."""
    for version in STATEFUL.keys() - {NEWEST}:
        with pytest.raises(ClientCannot, match="no sampling with tools"):
            prepared(asked, SAMPLING, version)
    for version in (NEWEST, LATEST.version):
        with pytest.raises(ClientCannot, match=r"sampling\.tools"):
            prepared(asked, {"sampling": {}}, version)
    assert prepared(asked, SAMPLING).params.keys() & {"tools", "toolChoice"}


def test_only_files_are_roots() -> None:
    """S-ROOTS-003."""
    listed = [{"uri": "https://example.org/"}, {"uri": "file:///srv", "name": "srv"}]
    asked = prepared(Roots(), {"roots": {}})
    assert asked.parse({"roots": listed}) == [Root(uri="file:///srv", name="srv")]


@pytest.mark.parametrize(
    "wire",
    [
        {"type": "text", "text": "t"},
        {"type": "tool_use", "id": "a", "name": "find", "input": {}},
        {"type": "tool_result", "toolUseId": "a", "content": []},
    ],
)
def test_what_a_block_is_marked_with_goes_back(wire: JsonObject) -> None:
    """S-SAMPLING-022."""
    marked = {**wire, "_meta": {"example.org/a": 1}}
    assert sampled_block(marked).meta == {"example.org/a": 1}
    assert sampled_block(wire).meta is None


def test_what_a_client_marks_a_block_with_may_be_its_own_business() -> None:
    """S-SAMPLING-022: no key is refused that the other side has chosen."""
    marked = {"type": "text", "text": "t", "_meta": {"dev.mcp/cache": 1, "a b": 2}}
    assert sampled_block(marked).meta == marked["_meta"]


# -- results ----------------------------------------------------------------------


@pytest.mark.parametrize("version", STATEFUL)
async def test_the_message_of_an_error_is_one_line(
    client: Client, version: str
) -> None:
    """S-BASE-026, S-TOOLS-040, S-TOOLS-043."""
    found = await client.call("drill_add", a="x", c=1)
    if STATEFUL[version].argument_errors_as_results:
        assert found.text.count("\n") == 3
    else:
        assert "\n" not in found.error["message"]
        assert len(found.error["data"]["violations"]) == 3


@pytest.mark.parametrize("which", ["\u00e4", "a b", "<a>", "%", "a\n"])
@pytest.mark.parametrize("method", ["resources/read", "resources/subscribe"])
@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_what_is_no_uri_names_no_resource(
    client: Client, method: str, which: str
) -> None:
    """S-RES-033: the template `memo://value/{which}` would take it."""
    found = await client.request(method, {"uri": f"memo://value/{which}"})
    assert found.error["code"] == -32002


@pytest.mark.parametrize(
    ("given", "total", "more"),
    [
        *((Completion(["1"]), 1, False), (Completion(["1"], total=9), 9, True)),
        (Completion(["1"], total=9, has_more=False), 9, False),
        *((Completion(["1"] * 101), 101, True), (Completion(["1"] * 100), 100, False)),
    ],
)
def test_completion_says_that_there_is_more(
    given: Completion, total: int, more: bool
) -> None:
    """S-COMPL-006."""
    wire = definitions._completion_to_wire(given)
    assert (wire["total"], wire["hasMore"]) == (total, more)
    assert len(wire["values"]) <= 100


# -- S-LOG-015: log messages hold nothing of the inside ----------------------------


class Heard:
    """A call that notes what is logged to its client."""

    def __init__(self) -> None:
        self.said: list[tuple[str, object, str | None]] = []

    def send_log_message(self, level: str, data: object, logger: str | None) -> None:
        self.said.append((level, data, logger))


@pytest.fixture
def client_logger() -> Any:
    logger = logging.getLogger("shop.requirements")
    handler = client_logging.ClientHandler()
    logger.addHandler(handler)
    yield logger
    logger.removeHandler(handler)


def test_tracebacks_stay_here(client_logger: logging.Logger) -> None:
    heard = Heard()
    call = SimpleNamespace(core=heard)
    token = current_call.set(call)  # type: ignore[arg-type]
    try:
        raise_and_log(client_logger.exception)
    finally:
        current_call.reset(token)
    assert heard.said == [("error", "It failed.", "shop.requirements")]


def raise_and_log(log: Callable[..., None]) -> None:
    try:
        raise ValueError("a secret of the inside")
    except ValueError:
        log("It failed.", stack_info=True)
