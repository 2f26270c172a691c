"""T17: messages to clients have no secrets, and what a model is asked stays nowhere."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import pytest
from django.apps import apps

from mcp_app import Context, Sample, SyncContext, ToolError
from mcp_app.interface.log_secrets import BLOT, log_secrets
from mcp_app.logs import JsonFormatter
from mcp_app.pools.database import reader
from mcp_app.process.runtime import Process
from mcp_app.server.client_logging import ClientHandler
from tests.asgi_client import PREFIX, Client, JsonObject
from tests.scripting import STATEFUL, STATELESS, Play
from tests.serving import Connect, all_logged

ERAS: Final = (STATEFUL, STATELESS)
DEBUG: Final = {f"{PREFIX}logLevel": "debug"}
TOKEN: Final = "mcp_canaryOfATokenThatIsNone00000000000000000"
JWT: Final = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.canary"
PASSWORD: Final = "canary-password"
SECRETS: Final = (TOKEN, JWT, PASSWORD)
DATA: Final[JsonObject] = {
    "order": 7,
    "steps": [{"request": {"headers": {"X-Api-Key": PASSWORD, "accept": "*/*"}}}],
    "password": PASSWORD,
    "said": f"Authorization: Bearer {PASSWORD}1 and {JWT}",
    "token": [TOKEN],
    "text": TOKEN,
}
SHOWN: Final[JsonObject] = {
    "order": 7,
    "steps": [{"request": {"headers": {"X-Api-Key": BLOT, "accept": "*/*"}}}],
    "password": BLOT,
    "said": f"Authorization: {BLOT} and {BLOT}",
    "token": BLOT,
    "text": BLOT,
}


@pytest.fixture
def forwarding(play: Play) -> Iterator[None]:
    """Let all that is logged here be forwarded to the clients whose calls log it."""
    handler = ClientHandler()
    root = logging.getLogger()
    names = ["", "mcp_app", "shop"]
    before = {name: logging.getLogger(name).level for name in names}
    root.addHandler(handler)
    for name in names:
        logging.getLogger(name).setLevel(logging.DEBUG)
    yield
    root.removeHandler(handler)
    for name in names:
        logging.getLogger(name).setLevel(before[name])


async def connected(connect: Connect, version: str, **more: Any) -> Client:
    client = await connect(version, **more)
    if client.revision.sessions:
        await client.request("logging/setLevel", {"level": "debug"})
    return client


async def everything(process: Process) -> str:
    await all_logged(process.log)
    assert process.audit is not None
    process.audit.write_pending()
    await process.audit.wait_until_written()
    models = apps.get_app_config("mcp_app").get_models()
    rows: Any = [model._base_manager.values_list() for model in models]
    return str([await reader.run(list, each) for each in rows])


# -- log messages -------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["async", "sync"])
@pytest.mark.parametrize("version", ERAS)
async def test_t17_log_messages_to_clients_have_no_secrets(
    play: Play,
    connect: Connect,
    process: Process,
    forwarding: None,
    caplog: pytest.LogCaptureFixture,
    version: str,
    tool: str,
) -> None:
    def script(ctx: Context | SyncContext) -> str:
        ctx.log("info", DATA)
        logging.getLogger("shop").info("Sent Bearer %s and %s.", f"{PASSWORD}1", TOKEN)
        return "logged"

    async def asynchronous(ctx: Context) -> str:
        return script(ctx)

    client = await connected(connect, version)
    run = script if tool == "sync" else asynchronous
    found = await play(tool, run, client=client, meta=DEBUG)
    first, second = found.notifications("notifications/message")
    assert first["data"] == SHOWN
    assert second["data"] == f"Sent {BLOT} and {BLOT}."
    assert not any(each in found.raw.decode() for each in SECRETS)
    # Nor is it stored for clients that come back.
    rows = await everything(process)
    assert BLOT in rows or version == STATELESS
    assert not any(each in rows for each in SECRETS)


async def test_t17_staff_are_told_how_many_secrets_there_were(
    play: Play, process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    async def script(ctx: Context) -> None:
        for _ in range(3):
            ctx.log("info", DATA)
        # Who wants no such messages is sent none.
        ctx.log("debug", DATA)

    before = process.build_report().secrets
    log_secrets._next_warning = 0
    await play("async", script, meta={f"{PREFIX}logLevel": "info"})
    assert process.build_report().secrets == before + 3 * 6
    told = [each for each in caplog.messages if "Secrets were taken out" in each]
    assert len(told) == 1
    assert f"{before + 6} so far" in told[0]
    assert not any(each in caplog.text for each in SECRETS)


@pytest.mark.parametrize("version", ERAS)
async def test_t17_what_we_say_ourselves_names_nobody(
    play: Play, connect: Connect, forwarding: None, version: str
) -> None:
    """Errors, stops and the log are about a call, and not about who makes it."""
    person = {"x-user": "canary-person", "x-client": "canary-client"}
    client = await connected(connect, version, path="/mcp/private", headers=person)

    async def crashing(ctx: Context) -> None:
        logging.getLogger("shop").info("This call is somebody's.")
        raise LookupError("Nothing is there.")

    async def failing(ctx: Context) -> None:
        raise ToolError("Ask again.")

    async def late(ctx: Context) -> None:
        with suppress(ValueError):
            ctx.log("loud", "nothing")  # type: ignore[arg-type]
        await ctx.elicit("Which?", {"type": "array"})

    told = 0
    for script in (crashing, failing, late):
        found = await play("async", script, client=client, meta=DEBUG)
        told += len(found.notifications("notifications/message"))
        assert b"canary" not in found.raw
    for name in ("nothing", "async"):
        found = await client.request("tools/call", {"name": name, "arguments": {}})
        assert b"canary" not in found.raw
    assert told == 1


# -- sampling -----------------------------------------------------------------------

ASKED: Final = "canary-prompt-5d41402abc4b"
ANSWERED: Final = "canary-completion-7d793037a076"


def model(method: str, params: JsonObject) -> JsonObject:
    assert ASKED in json.dumps(params)
    content = {"type": "text", "text": ANSWERED}
    return {"role": "assistant", "model": "small", "content": content}


def refusing(method: str, params: JsonObject) -> JsonObject:
    return {"error": {"code": -1, "message": f"No: {ANSWERED}"}}


def misunderstood(method: str, params: JsonObject) -> JsonObject:
    return {"role": "nobody", "model": ANSWERED, "content": {"text": ANSWERED}}


@pytest.mark.parametrize("tool", ["async", "sync"])
@pytest.mark.parametrize("version", ERAS)
async def test_t17_what_a_model_is_asked_and_says_is_neither_logged_nor_kept(
    play: Play,
    connect: Connect,
    process: Process,
    caplog: pytest.LogCaptureFixture,
    version: str,
    tool: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    open_rows: list[str] = []

    def script(ctx: SyncContext) -> str:
        sampled = ctx.sample(ASKED, max_tokens=9, system=ASKED)
        assert sampled.text == ANSWERED
        return "sampled"

    async def asynchronous(ctx: Context) -> str:
        answers = await ctx.ask(one=Sample(ASKED, max_tokens=9, metadata={"a": ASKED}))
        assert ANSWERED in str(answers["one"])
        open_rows.append(await everything(process))
        return "sampled"

    client = await connect(version)
    run = script if tool == "sync" else asynchronous
    found = await play(tool, run, answer=model, client=client)
    assert found.text == "sampled"
    rows = await everything(process)
    logged = [JsonFormatter().format(each) for each in caplog.records]
    for canary in (ASKED, ANSWERED):
        assert canary not in rows
        assert canary not in caplog.text
        assert not any(canary in each for each in logged)
        # A call that runs may be asked again: what is looked for here was there.
        assert all((canary in each) == (version == STATEFUL) for each in open_rows)
    assert ("notifications/cancelled" in rows) == (version == STATEFUL)


@pytest.mark.parametrize("answer", [refusing, misunderstood])
async def test_t17_a_refusal_of_a_model_is_not_logged(
    play: Play,
    connect: Connect,
    process: Process,
    caplog: pytest.LogCaptureFixture,
    answer: Any,
) -> None:
    """Its words go to the code that asked, and with its result to the client."""
    caplog.set_level(logging.DEBUG)

    async def script(ctx: Context) -> str:
        return (await ctx.sample(ASKED, max_tokens=9)).text

    client = await connect(STATEFUL)
    found = await play("async", script, answer=answer, client=client)
    assert found.result["isError"] is True
    assert "canary" not in caplog.text
    await everything(process)
    calls = apps.get_model("mcp_app", "Call")._base_manager.values_list("error")
    [(error,)] = await reader.run(list, calls)
    assert error == "The client refused a question, or its answer does not fit."
