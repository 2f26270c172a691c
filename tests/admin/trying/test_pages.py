"""The page *Try it*: what a person presses, and what a client gets."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
from pathlib import Path
from typing import Any, Final

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User
from django.core.signals import got_request_exception
from django.db import connection
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.urls import resolve
from django.views.debug import ExceptionReporter

from mcp_app import Context
from mcp_app.admin.page.header import page_url
from mcp_app.admin.trying.pages import TryPage
from mcp_app.catalog.registry import mcp
from mcp_app.models import AccessToken, Prompt, Resource, ResourceTemplate, Server, Tool
from mcp_app.process.runtime import Process
from mcp_app.publishing.overlays import make_overlays
from tests.admin.trying.conftest import Login, Offer
from tests.admin.trying.console import (
    answer,
    changed,
    label_of,
    result_of,
    run,
    send,
    text_of,
    typed,
    url_of,
)
from tests.audit.reading import kept
from tests.drill.models import Ledger
from tests.drill.skills import FILES, SLUG, write_skills
from tests.scripting import STATEFUL, STATELESS
from tests.serving import PATIENCE_S

ERAS: Final = [STATELESS, STATEFUL]
UNCHANGED: Final = "Correct what is marked. Nothing was run."


async def add(a: int, b: int) -> int:
    return a + b


def enter(key: str) -> str:
    Ledger.objects.create(key=key, worker="a trial")
    return "entered"


async def entered() -> int:
    return await Ledger.objects.filter(worker="a trial").acount()


async def test_a_tool_is_run(client: AsyncClient, process: Process, adder: str) -> None:
    response = await run(client, adder, a="2", b="3")
    assert (response.context["shown"].look, result_of(response)) == ("good", "5")
    assert "fits the promised shape" in text_of(response)
    assert "no-store" in response["Cache-Control"]
    assert "curl -sS http://testserver/mcp" in text_of(response)
    [call] = await kept(process)
    assert (call.principal, call.principal_client) == ("console", "ana0")
    assert call.client_name == "Try it"


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25", "2026-07-28"])
async def test_prompt_resource_and_template(client: AsyncClient, version: str) -> None:
    prompt = await url_of(Prompt, name="test_prompt_with_arguments")
    response = await run(client, prompt, arg1="tea", arg2="milk", revision=version)
    assert "tea" in result_of(response)
    assert "milk" in result_of(response)
    resource = await url_of(Resource, name="static-text")
    response = await run(client, resource, revision=version)
    assert result_of(response) == "This is the content of the static text resource."
    image = await url_of(Resource, name="static-binary")
    response = await run(client, image, revision=version)
    assert '<img class="mcp-drawn" src="data:image/png;base64,' in text_of(response)
    template = await url_of(ResourceTemplate, name="template-data")
    response = await run(client, template, id="a b/c", revision=version)
    assert "a b/c" in result_of(response)


async def test_a_file_of_a_skill_is_read(client: AsyncClient) -> None:
    rows = await sync_to_async(write_skills)()
    try:
        url = await sync_to_async(page_url)(rows[1], "try")
        fields = (await client.get(url)).context["arguments"].fields
        texts = [option.text for option in fields[0].options]
        assert texts[-3:] == [*FILES]
        response = await run(client, url, server=SLUG)
        assert "# Refunds" in result_of(response)
        chosen = {option.text: option.value for option in fields[0].options}
        for path in ("references/RULES.md", "assets/stamp one.png"):
            response = await run(client, url, server=SLUG, file=chosen[path])
            assert path.split()[0] in text_of(response)
        assert "stamp%20one.png" in text_of(response)
    finally:
        for row in rows:
            await row.adelete()


async def test_a_file_of_a_folder_is_read(
    client: AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp, "resources", {})
    (tmp_path / "refunds").mkdir()
    text = "---\nname: refunds\ndescription: Use it to pay back.\n---\n"
    (tmp_path / "refunds" / "SKILL.md").write_text(text)
    (tmp_path / "refunds" / "rules.md").write_text("30 days")
    mcp.skills(str(tmp_path))
    await sync_to_async(make_overlays)(mcp)
    url = await url_of(Resource, name="refunds")
    fields = (await client.get(url)).context["arguments"].fields
    assert [option.text for option in fields[0].options][-1] == "rules.md"
    await Resource.objects.filter(name="refunds").adelete()


async def test_an_error_and_a_crash(login: Login) -> None:
    client = await login(raise_request_exception=False)
    url = await url_of(Tool, name="drill_fail")
    response = await run(client, url, kind="tool_error")
    assert response.context["shown"].look != "good"
    response = await run(client, url, kind="exception")
    assert "Error number " in text_of(response)
    response = await run(client, url, kind=None)
    assert "kind" in text_of(response)


async def test_working_copy_and_published(client: AsyncClient, offer: Offer) -> None:
    url = await offer("both", add, description="The published one.")
    schema = '{"type": "object", "properties": {"value": {}}, "required": ["value"]}'
    await changed("both", config='{"function": "drill.echo"}', input_schema=schema)
    page = await client.get(url)
    assert [each.key for each in page.context["arguments"].fields] == ["value"]
    response = await run(client, url, value='"tea"')
    assert result_of(response) == "tea"
    data = {**await typed(client, url), "which": "published", "way": "json"}
    response = await send(client, url, {**data, "arguments": '{"a": 1, "b": 2}'})
    assert result_of(response) == "3"
    assert [each.key for each in response.context["arguments"].fields] == ["a", "b"]


async def test_a_draft_is_tried_at_any_server(
    client: AsyncClient, offer: Offer
) -> None:
    url = await offer("draft", add, publish=False)
    page = text_of(await client.get(url))
    assert '<option value="published"' not in page
    for server in ("default", "private", "pages"):
        response = await run(client, url, a="1", b="2", server=server)
        assert result_of(response) == "3"
    data = {**await typed(client, url, a="1", b="2"), "which": "published"}
    response = await client.post(url, data)
    assert response.context["problem"].startswith("It is not published any more")
    assert "shown" not in response.context


async def test_a_working_copy_without_a_function(
    client: AsyncClient, offer: Offer, process: Process
) -> None:
    url = await offer("lost", add)
    await changed("lost", config='{"function": "there.is_none"}')
    response = await run(client, url)
    assert label_of(response) == "It cannot run."
    assert "there.is_none" in text_of(response)
    assert await kept(process) == []


async def test_a_broken_working_copy(client: AsyncClient, offer: Offer) -> None:
    """Its columns are JSON, but no schema."""
    url = await offer("broken", add)
    schema = '{"type": 5, "properties": {"a": {"x-mcp-header": 5}}}'
    await changed("broken", input_schema=schema, output_schema='{"type": 5}')
    response = await client.post(url, await typed(client, url))
    assert response.status_code == 200


@pytest.mark.parametrize("version", ERAS)
async def test_a_form_is_answered(
    client: AsyncClient, version: str, asker: str
) -> None:
    asked = await run(client, asker, question="How?", revision=version)
    assert "The tool asks:" in text_of(asked)
    assert "How?" in text_of(asked)
    [form] = asked.context["forms"]
    field = form.fields[0].key
    for action, word in (("decline", "decline"), ("cancel", "cancel")):
        response = await answer(client, asker, asked, action)
        assert word in text_of(response).lower()
        assert not response.context["forms"]
    response = await answer(client, asker, asked, **{field: "well"})
    assert "well" in result_of(response)


@pytest.mark.parametrize("version", ERAS)
async def test_t17_no_log_has_what_the_page_shows(
    client: AsyncClient, caplog: pytest.LogCaptureFixture, version: str, asker: str
) -> None:
    """Django logs a whole context at DEBUG if a template's variable is missing."""
    caplog.set_level(logging.DEBUG, "django.template")
    asked = await run(client, asker, question="canary-question", revision=version)
    [form] = asked.context["forms"]
    shown = {form.fields[0].key: "canary-answer"}
    response = await answer(client, asker, asked, **shown)
    assert "canary-answer" in text_of(response)
    assert "admin/mcp_app/try.html" in caplog.text
    assert "canary" not in caplog.text
    for page in (asked, response):
        for name in ("state", "once"):
            assert not page.context[name] or page.context[name] not in caplog.text


@pytest.mark.parametrize("debug", [False, True])
def test_t17_no_error_page_has_what_was_sent(
    admin_client: Client,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    debug: bool,
) -> None:
    def fail(page: TryPage, log: object) -> None:
        raise RuntimeError("It fails.")

    monkeypatch.setattr(TryPage, "run", fail)
    settings.DEBUG = debug
    reports = []

    def report(request: Any, **_: Any) -> None:
        reporter = ExceptionReporter(request, *sys.exc_info())
        reports.extend([reporter.get_traceback_text(), reporter.get_traceback_html()])

    got_request_exception.connect(report)
    config = json.dumps({"content": [{"type": "text", "text": "a"}]})
    tool = Tool.objects.create(name="a", title="A", kind="text", config=config)
    admin_client.raise_request_exception = False
    sent = {"argument-question": "canary-argument", "state": "canary-state"}
    url = page_url(tool, "try")
    response = admin_client.post(url, {**sent, "answered": "canary-answer"})
    got_request_exception.disconnect(report)
    assert response.status_code == 500
    assert len(reports) == 2
    assert all("It fails." in each and "canary" not in each for each in reports)


@pytest.mark.parametrize("version", ERAS)
async def test_two_questions_one_after_the_other(
    client: AsyncClient, version: str
) -> None:
    url = await url_of(Tool, name="drill_ask_twice")
    asked = await run(client, url, question="First?", revision=version)
    for word in ("one", "two"):
        [form] = asked.context["forms"]
        asked = await answer(client, url, asked, **{form.fields[0].key: word})
    assert not asked.context["forms"]
    assert "two" in result_of(asked)


@pytest.mark.parametrize("version", ERAS)
async def test_a_page_a_model_and_roots(client: AsyncClient, version: str) -> None:
    url = await url_of(Tool, name="drill_ask_url")
    asked = await run(client, url, revision=version)
    [form] = asked.context["forms"]
    assert f'href="{form.url}"' in text_of(asked)
    assert 'rel="noopener noreferrer"' in text_of(asked)
    response = await answer(client, url, asked)
    assert "accept" in result_of(response)
    url = await url_of(Tool, name="test_sampling")
    asked = await run(client, url, prompt="Say it.", revision=version)
    [form] = asked.context["forms"]
    assert "Say it." in form.message
    response = await answer(client, url, asked, **{form.name: "Said."})
    assert "Said." in result_of(response)
    response = await answer(client, url, asked, "decline")
    assert "Said." not in text_of(response)


async def test_a_client_that_can_do_less(client: AsyncClient, asker: str) -> None:
    sent = await typed(client, asker, question="How?")
    response = await send(client, asker, {**sent, "can": ["roots"]})
    assert not response.context["forms"]
    capabilities = response.context["messages_sent"][0][1]
    assert '"elicitation"' not in capabilities
    assert '"roots":{}' in capabilities


async def test_a_question_that_was_not_asked(client: AsyncClient, asker: str) -> None:
    """What a page sends back that the server never asked."""
    asked = await run(client, asker, question="How?")
    forged = [{"method": "roots/list", "params": {}, "name": "forged"}]
    response = await answer(client, asker, asked, asked=json.dumps(forged))
    assert [each.kind for each in response.context["forms"]] == ["form"]
    for text in ("5", "{", "[5]", '[{"method": "roots/list", "params": 5}]'):
        response = await answer(client, asker, asked, asked=text, answered=text)
        assert response.status_code == 200


async def test_run_begins_anew(client: AsyncClient, asker: str) -> None:
    """What was answered belongs to the call that asked."""
    asked = await run(client, asker, question="How?", revision=STATEFUL)
    [form] = asked.context["forms"]
    done = await answer(client, asker, asked, **{form.fields[0].key: "well"})
    assert not done.context["forms"]
    data = await typed(client, asker, question="How?", revision=STATEFUL)
    answered = json.dumps({form.question.answer_key: {"action": "decline"}})
    again = await send(client, asker, {**data, "answered": answered})
    assert again.context["forms"]


@pytest.mark.parametrize("change", ["person", "tool", "bit"])
async def test_a_state_of_somebody_or_something_else(
    login: Login, offer: Offer, change: str
) -> None:
    client, other = await login(), await login()
    url = await url_of(Tool, name="drill_ask")
    asked = await run(client, url, question="How?")
    state = asked.context["state"]
    assert state
    [form] = asked.context["forms"]
    values: dict[str, Any] = {form.fields[0].key: "well"}
    if change == "person":
        client = other
        values["once"] = (await typed(other, url))["once"]
    elif change == "tool":
        row = await Tool.objects.aget(name="drill_ask_twice")
        url = url.replace(url.split("/")[-3], str(row.pk))
        values["once"] = (await typed(client, url))["once"]
    else:
        values["state"] = state[:20] + ("A" if state[20] != "A" else "B") + state[21:]
    response = await answer(client, url, asked, **values)
    shown = response.context.get("shown")
    assert shown is not None
    assert shown.look != "good"
    assert "well" not in [each.text for each in shown.parts]


async def test_what_changes_something_runs_once(
    client: AsyncClient, offer: Offer
) -> None:
    url = await offer("enters", enter)
    data = await typed(client, url, key="a", dry=None)
    twice = await asyncio.gather(*(client.post(url, data) for _ in range(2)))
    assert await entered() == 1
    again = await client.post(url, data)
    assert await entered() == 1
    told = [text_of(each) for each in (*twice, again)]
    said = "Sent again, it is not run again."
    assert sorted(said in each for each in told) == [False, True, True]
    assert again.context["problem"].startswith("This was run at ")
    # The page that says so has a new ticket.
    await send(client, url, await typed(client, url, key="a", dry=None))
    assert await entered() == 2
    for wrong in ("", "forged"):
        response = await client.post(url, {**data, "once": wrong})
        assert response.context["problem"].startswith("This page is too old")
    assert await entered() == 2
    await sync_to_async(Ledger.objects.all().delete)()


async def test_a_dry_run_and_what_reads_run_each_time(
    client: AsyncClient, offer: Offer
) -> None:
    url = await offer("enters", enter)
    reads = await offer("adds", add, read_only=True)
    data = await typed(client, url, key="a", dry="1")
    sums = await typed(client, reads, a="1", b="2")
    assert "dry" not in sums
    for _ in range(2):
        response = await send(client, url, data)
        assert response.context["shown"].is_undone
        assert (
            "All that it wrote to the databases in its own thread was undone."
            in text_of(response)
        )
        response = await send(client, reads, sums)
        assert result_of(response) == "3"
    assert await entered() == 0


async def test_a_dry_run_takes_no_decision_of_others(
    client: AsyncClient, login: Login, offer: Offer
) -> None:
    """It undoes nothing outside of the databases."""
    url = await offer("pays", add, approval="other")
    lee = await login("view_tool", "try", "publish", "behind")
    data = await typed(client, url, a="1", b="2", dry="1")
    assert "nobody can be asked here" in text_of(await send(lee, url, data))
    assert result_of(await send(client, url, data)) == "3"


async def test_each_round_of_questions_has_its_own_ticket(
    client: AsyncClient, offer: Offer
) -> None:
    async def asks(ctx: Context) -> str:
        await ctx.list_roots()
        return "asked"

    url = await offer("asks", asks)
    asked = await run(client, url, dry=None)
    done = await answer(client, url, asked, dry=None)
    assert result_of(done) == "asked"
    again = await answer(client, url, asked, dry=None)
    assert again.context["problem"].startswith("This was run at ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1.5", "“1.5” is not a whole number."),
        ("1e400", "“1e400” is not a whole number."),
        ("x" * 100_000, "x…” is not a whole number."),
        ('"\\ud800"', "is not a whole number."),
        ("1\0", "The text has the character NUL (U+0000); remove it."),
    ],
)
async def test_what_cannot_be_read_is_told_at_its_field(
    client: AsyncClient, process: Process, adder: str, text: str, said: str
) -> None:
    response = await run(client, adder, a=text, b="3")
    assert response.context["problem"] == UNCHANGED
    arguments = response.context["arguments"]
    first, second = arguments.fields
    assert first.error.endswith(said)
    assert (second.error, arguments.error) == ("", "")
    assert f'aria-describedby="id_{first.name}_help"' in text_of(response)
    assert await kept(process) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "The text is not JSON"),
        ("[]", "The arguments must be a JSON object, such as {}."),
        ("5", "The arguments must be a JSON object, such as {}."),
        ('{"a": 1, "a": 2}', "twice"),
        ('{"a": "\\u0000"}', "NUL (U+0000)"),
        ('{"a": "\\ud800"}', "surrogate"),
        ('{"a": 1e400}', "1e400"),
        ("[" * 100_000, "nests"),
    ],
)
async def test_text_that_is_no_arguments_is_told_and_kept(
    client: AsyncClient, process: Process, adder: str, text: str, said: str
) -> None:
    response = await run(client, adder, way="json", arguments=text)
    assert response.context["problem"] == UNCHANGED
    arguments = response.context["arguments"]
    assert said in arguments.error
    assert (arguments.text, arguments.by_json) == (text, True)
    assert not any(each.error for each in arguments.fields)
    assert 'aria-describedby="mcp-arguments-error"' in text_of(response)
    assert await kept(process) == []


async def test_a_form_that_is_too_large(client: AsyncClient, process: Process) -> None:
    url = await url_of(Tool, name="drill_echo")
    data = await typed(client, url)
    response = await client.post(url, {**data, "arguments": "a" * 3_000_000})
    assert response.status_code == 413
    said = "This site reads forms of at most 2.5\xa0MB, so nothing was run."
    assert response.context["problem"] == said
    response = await client.post(url, {f"a{at}": "" for at in range(1_001)})
    assert response.status_code == 413
    assert "more than 1000 fields" in response.context["problem"]
    assert await kept(process) == []


async def test_a_form_from_elsewhere(
    login: Login, process: Process, adder: str
) -> None:
    """The page looks for the form's token itself."""
    client = await login(enforce_csrf_checks=True)
    opened = await client.get(adder)
    assert (await client.post(adder, {"which": "published"})).status_code == 403
    assert await kept(process) == []
    token = opened.context["csrf_token"]
    data = {**await typed(client, adder, a="1", b="2")}
    response = await client.post(adder, {**data, "csrfmiddlewaretoken": str(token)})
    assert result_of(response) == "3"
    large = {"arguments": "a" * 3_000_000}
    assert (await client.post(adder, large)).status_code == 413


async def test_a_server_that_is_gone(client: AsyncClient, offer: Offer) -> None:
    """It does not run at another one instead."""
    url = await offer("adds", add, read_only=True)
    data = await typed(client, url, a="1", b="2", server="private")
    gone = {**data, "server": "there-is-none"}
    response = await client.post(url, gone)
    said = "The server “there-is-none” is not published any more."
    assert response.context["problem"] == said
    off = await send(client, url, {**data, "server": "off"})
    assert label_of(off) == "Clients get 503 here: the server does not serve now."


async def test_a_server_that_became_public(
    client: AsyncClient, offer: Offer, process: Process
) -> None:
    async def who(ctx: Context) -> str:
        return ctx.principal.user_name or "nobody"

    url = await offer("tells_who", who, read_only=True)
    data = await typed(client, url, server="private")
    assert result_of(await send(client, url, data)) == "ana0"
    server = await Server.objects.aget(slug="private")
    server.access = "public"
    await sync_to_async(server.save)()
    await process.gate.wait_for_check()
    try:
        response = await send(client, url, data)
        assert result_of(response) == "nobody"
        assert "This server is public: it asks nobody" in text_of(response)
    finally:
        server.access = "header"
        await sync_to_async(server.save)()
        await process.gate.wait_for_check()


async def test_a_row_that_was_deleted(client: AsyncClient, offer: Offer) -> None:
    url = await offer("gone", add)
    data = await typed(client, url, a="1", b="2")
    await sync_to_async((await Tool.objects.aget(name="gone")).delete)()
    response = await client.post(url, data)
    assert response.status_code == 302
    assert (await client.get(url)).status_code in (302, 404)


async def test_so_many_statements(login: Login, offer: Offer) -> None:
    """Beside the tool's own; with few servers, tokens and tools as with many."""
    url = await offer("adds", add, read_only=True)
    client = await login("view_tool", "try", "try_as")
    data = await typed(client, url, a="1", b="2")

    async def show() -> None:
        await client.get(url)

    async def try_it() -> None:
        assert result_of(await send(client, url, data)) == "3"

    def statements() -> list[int]:
        counts = []
        for call in (show, try_it):
            with CaptureQueriesContext(connection) as found:
                async_to_sync(call)()
            counts.append(len(found))
        return counts

    few = await sync_to_async(statements)()
    assert max(few) <= 12, few
    await sync_to_async(_make_many)()
    assert await sync_to_async(statements)() == few


async def test_its_request_has_no_transaction(client: AsyncClient, adder: str) -> None:
    """Its locks would hold up the call."""
    # So Django is told by whoever decorated the view, through all that wraps it.
    assert vars(resolve(adder).func)["_non_atomic_requests"] == {"default"}
    assert (await client.get(adder)).status_code == 200


def _make_many() -> None:
    user = User.objects.get(username="ana0")
    for number in range(20):
        AccessToken.objects.make(user=user, name=f"token {number}")


@pytest.mark.parametrize("version", ERAS)
async def test_a_task_is_started_and_its_page_has_the_result(
    client: AsyncClient, login: Login, offer: Offer, process: Process, version: str
) -> None:
    draft = await offer("draft", add, publish=False, task="optional")
    assert "Start as a task" not in text_of(await client.get(draft))
    may_end = threading.Event()

    def add_later(a: int, b: int) -> int:
        # Who has the result at once needs no page of a task.
        may_end.wait(PATIENCE_S)
        return a + b

    url = await offer("adds", add_later, task="optional")
    assert "Start as a task" in text_of(await client.get(url))
    values = {"a": "1", "b": "2", "revision": version, "task": "1", "dry": None}
    for changes, problem in (
        ({"dry": "1"}, "Untick the dry run"),
        ({"revision": "2025-06-18"}, "This revision has no tasks"),
        ({"which": "working"}, "choose that version"),
        ({"a": "x"}, UNCHANGED),
    ):
        response = await run(client, url, **{**values, **changes})
        assert problem in response.context["problem"]
    page = (await client.post(url, await typed(client, url, **values)))["Location"]
    may_end.set()
    async with asyncio.timeout(PATIENCE_S):
        while (shown := (await client.get(page)).context["shown"]) is None:
            await asyncio.sleep(0.01)
    assert [each.text for each in shown.parts] == ["3"]
    # Others see that it is there, and not what came of it.
    response = await (await login()).get(page)
    assert "completed" in text_of(response)
    assert response.context["shown"] is None
    [created, ran] = await kept(process)
    assert [created.outcome, ran.outcome] == ["task", "answered"]
    assert ran.session == response.context["handle"]
    await response.context["task"].adelete()


@pytest.mark.parametrize(
    "mcp", [{"TASKS": "worker", "LIMITS": {"tasks_per_person": 1}}]
)
async def test_a_task_waits_for_a_worker_and_counts(
    client: AsyncClient, offer: Offer
) -> None:
    url = await offer("adds", add, task="optional")
    sent = await typed(client, url, a="1", b="2", task="1", dry=None)
    response = await client.post(url, sent, follow=True)
    assert "waits for a place" in text_of(response)
    sent["once"] = (await typed(client, url))["once"]
    assert "You have 1 unfinished tasks" in result_of(await send(client, url, sent))
    await response.context["task"].adelete()


async def test_who_may_not_try_a_tool_gets_no_preview_of_it(
    client: AsyncClient, login: Login, adder: str
) -> None:
    hers = await login("view_tool")
    assert (await hers.get(f"{adder}preview/")).status_code == 403
    # It has no app.
    assert (await client.get(f"{adder}preview/")).status_code == 404
