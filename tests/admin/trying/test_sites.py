"""What another site answers, tried from the admin, and what it is not told twice."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async
from django.apps import apps
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.utils.log import AdminEmailHandler
from pytest_django import Settings

from mcp_app.egress.client import close_connections
from mcp_app.models import Example, Resource, ResourceTemplate, Tool
from mcp_app.process.runtime import Process
from tests.admin.pages import page, page_of, shown_values
from tests.admin.trying.conftest import Login
from tests.admin.trying.console import (
    changed,
    filled,
    label_of,
    result_of,
    run,
    send,
    text_of,
    typed,
    url_of,
)
from tests.audit.reading import kept
from tests.egress.conftest import peer
from tests.egress.peer import Peer, answer
from tests.kinds.http.test_kind import SECRET, mcp, served

__all__ = ["mcp", "peer", "served"]

AT: Final = {"server": "private"}


@pytest.fixture
async def other(served: Peer) -> AsyncIterator[Peer]:
    """The other site; what connects to it is closed after the test."""
    yield served
    await close_connections()


async def test_a_call_that_reads(login: Login, other: Peer) -> None:
    client = await login("view_tool", "try")
    url = await url_of(Tool, name="show")
    page = text_of(await client.get(url))
    assert "I want to really call" not in page
    assert "Dry run" not in page
    assert not other.received
    other.send = answer({"name": "Kettle", "key": SECRET})
    response = await run(client, url, **AT)
    assert '"name": "Kettle"' in text_of(response)
    assert other.received[0].header("X-Partner") == [SECRET]
    assert SECRET not in text_of(response)
    # It reads, so it may be sent again.
    await run(client, url, **AT)
    assert len(other.received) == 2


async def test_a_call_that_changes_something(login: Login, other: Peer) -> None:
    client = await login("view_tool", "try")
    url = await url_of(Tool, name="create_ticket")
    opened = await client.get(url)
    page = text_of(opened)
    address = f"http://127.0.0.1:{other.port}/api/tickets/{{{{queue}}}}"
    assert f"I want to really call POST {address}" in page
    assert "Dry run" not in page
    data = filled(opened, queue="sales", subject='"Help"', **AT)
    response = await client.post(url, data)
    assert response.context["problem"].startswith("Tick the box")
    confirmed = response.context["setup"].confirmation
    other.send = answer({"ticket": {"id": 5}}, 201)
    # What it calls is not what somebody ticked the box for.
    data = filled(response, queue="sales", subject='"Help"', **AT)
    response = await client.post(url, {**data, "really": f"{confirmed} else"})
    assert response.context["problem"].startswith("Tick the box")
    assert not other.received
    data["really"] = confirmed
    response = await send(client, url, data)
    assert '"id": 5' in text_of(response)
    response = await client.post(url, data)
    assert response.context["problem"].startswith("This was run at ")
    assert [each.method for each in other.received] == ["POST"]
    assert other.received[0].json == {"subject": "Help", "priority": 3}


async def test_a_hint_makes_no_call_one_that_reads(login: Login, other: Peer) -> None:
    """Staff may call it read-only: POST is POST."""
    await changed("create_ticket", publish=True, read_only=True)
    client = await login("view_tool", "try", "try_as")
    await User.objects.acreate(username="maria")
    url = await url_of(Tool, name="create_ticket")
    opened = await client.get(url)
    assert "I want to really call POST" in text_of(opened)
    confirmed = opened.context["setup"].confirmation
    as_maria = {"who": "user", "user": "maria", "really": confirmed}
    data = await typed(client, url, queue="sales", **AT, **as_maria)
    response = await client.post(url, data)
    said = "Only what reads is run as somebody else."
    assert response.context["problem"] == said
    assert not other.received
    other.send = answer({"ticket": {"id": 5}}, 201)
    data = await typed(client, url, queue="sales", really=confirmed, **AT)
    await send(client, url, data)
    response = await client.post(url, data)
    assert response.context["problem"].startswith("This was run at ")
    assert len(other.received) == 1
    other.send = answer({"name": "Kettle"})
    show = await url_of(Tool, name="show")
    await changed("show", publish=True, read_only=True)
    del as_maria["really"]
    response = await run(client, show, **AT, **as_maria)
    assert "Kettle" in text_of(response)
    await User.objects.filter(username="maria").adelete()


async def test_an_answer_is_fetched_before_anything_is_saved(
    login: Login, other: Peer, process: Process
) -> None:
    """Its names come back with the form, and none of its values."""
    part = {"name": "Hose", "cost": 21, "supplier": {"name": "Hydra", "iban": SECRET}}
    other.send = answer({"part": part, "more": [{"n": 1}]})
    rights = ("view_tool", "add_tool", "change_tool", "behind")
    client = await login(*rights, "try")
    add = page("tool", "add")
    opened = await client.get(f"{add}?kind=http&site=peer")
    typed = {"config-0-path": "/parts/5", "config-0-parts-0-name": "", "title": "Part"}
    fetch = page("tool", "fetch_new")
    shown = await send(client, fetch, {**shown_values(opened), **typed})
    assert "“Hydra”" in text_of(shown)
    assert SECRET not in text_of(shown)
    sent = shown_values(shown)
    assert "Hydra" not in str(sent)
    sent["config-0-tree"] = "part"
    deep = {"part": [".".join("a" * level) for level in range(1, 1_200)]}
    tampered = {**sent, "config-0-names": json.dumps(deep)}
    assert "Tick something" in text_of(await send(client, add, tampered))
    sent["config-0-tree-part"] = ["name", "supplier", "supplier.name"]
    assert (await client.post(add, sent)).status_code == 302
    [call] = await kept(process)
    assert (call.name, call.client_name) == ("part", "Fetch")
    made = await Tool.objects.aget(name="part")
    config = made.json("config")
    assert (config["take"], config["keep"]) == ("part", ["name", "supplier.name"])
    assert made.read_only
    await made.adelete()
    editor = await login(*rights)
    assert (await editor.post(fetch, {**typed, "kind": "http"})).status_code == 403


async def test_what_changes_something_is_fetched_with_a_tick(
    login: Login, other: Peer
) -> None:
    """Once, and by who may publish."""
    rights = ("view_tool", "add_tool", "change_tool", "behind", "try")
    client, publisher = await login(*rights), await login(*rights, "publish")
    row = await Tool.objects.aget(name="create_ticket")
    other.send = answer({"ticket": {"id": 5}}, 201)
    opened = await client.get(page_of(row))
    sent, url = shown_values(opened), page_of(row, "fetch")
    call = f"POST http://127.0.0.1:{other.port}/api/tickets/{{{{queue}}}}"
    queue = next(name for name in sent if name.startswith("argument-"))
    ticked = {**sent, "fetch-really": call, queue: "sales"}
    assert "Tick the box" in text_of(await client.post(url, sent))
    assert "Only who may publish" in text_of(await client.post(url, ticked))
    sent = shown_values(await publisher.get(page_of(row)))
    ticked |= {"fetch-once": sent["fetch-once"]}
    for told in ("201 Created", "Sent again, it is not run again."):
        assert told in text_of(await publisher.post(url, ticked))
    assert [each.method for each in other.received] == ["POST"]


async def test_examples_that_reach_another_site_wait_for_a_person(
    login: Login, other: Peer
) -> None:
    """To open the page calls nobody."""
    await changed("show", description="New.")
    row = await Tool.objects.aget(name="show")
    await Example.objects.acreate(kind="tool", ref=str(row.pk), name="one", values="{}")
    client = await login()
    assert "not run" in text_of(await client.get(page_of(row, "publish")))
    assert not other.received


async def test_the_published_version_has_its_own_kind(
    login: Login, other: Peer
) -> None:
    content = {"content": [{"type": "text", "text": "Hello."}]}
    await changed("create_ticket", kind="text", config=json.dumps(content))
    client = await login("view_tool", "try")
    url = await url_of(Tool, name="create_ticket")
    assert "I want to really call" not in text_of(await client.get(url))
    data = await typed(client, url, which="published", queue="sales", **AT)
    response = await client.post(url, data)
    assert response.context["problem"].startswith("Tick the box")
    assert "I want to really call POST" in text_of(response)
    assert not other.received


async def test_a_working_copy_needs_the_right_to_publish(
    login: Login, other: Peer
) -> None:
    await changed("show", description="New.")
    url = await url_of(Tool, name="show")
    client = await login("view_tool", "try", "behind")
    response = await client.post(url, await typed(client, url, **AT))
    assert response.context["problem"].startswith("Only who may publish")
    assert not other.received


async def test_what_fails(client: AsyncClient, other: Peer) -> None:
    other.send = answer("<p>No</p>", 500, "text/html")
    response = await run(client, await url_of(Tool, name="show"), **AT)
    assert "Help desk failed (500)." in text_of(response)
    assert "<p>No</p>" not in response.content.decode()
    url = await url_of(ResourceTemplate, name="ticket")
    response = await run(client, url, id="..", **AT)
    assert response.context["shown"].look != "good"
    assert len(other.received) == 1


async def test_resources(client: AsyncClient, other: Peer) -> None:
    other.send = answer("A ticket.", media_type="text/plain")
    url = await url_of(ResourceTemplate, name="ticket")
    assert result_of(await run(client, url, id="5", **AT)) == "A ticket."
    assert other.received[0].target == "/api/tickets/5"
    url = await url_of(Resource, name="rates")
    assert result_of(await run(client, url, **AT)) == "A ticket."


async def test_a_site_that_is_gone(
    client: AsyncClient, other: Peer, settings: Settings
) -> None:
    url = await url_of(Tool, name="show")
    data = await typed(client, url, **AT)
    settings.MCP = {**settings.MCP, "HTTP": {}}
    assert (await client.get(url)).status_code == 200
    response = await client.post(url, {**data, "which": "working"})
    assert response.status_code == 200
    shown = response.context.get("shown")
    assert shown is None or label_of(response) == "It cannot run."
    assert not other.received


async def test_no_secret_is_left_anywhere(
    client: AsyncClient, other: Peer, process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = await url_of(Tool, name="show")
    for status in (200, 401, 500):
        other.send = answer({"you sent": SECRET}, status)
        response = await run(client, url, **AT)
        assert SECRET not in response.content.decode()
        assert "•••" in text_of(response) or status != 200
    assert len(await kept(process)) == 3
    assert SECRET not in caplog.text
    assert SECRET not in await sync_to_async(_all_rows)()


def _all_rows() -> str:
    return repr([[*each._base_manager.values()] for each in apps.get_models()])


class Mails(AdminEmailHandler):
    """Keeps the texts of mails, the plain one and the one in HTML."""

    texts: Sequence[str] = ()

    def send_mail(
        self, subject: object, message: object, *_: object, **options: Any
    ) -> None:
        self.texts = [str(message), str(options["html_message"])]


async def test_a_bug_shows_no_secret(
    login: Login, other: Peer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither on Django's page for developers, nor in its mail to administrators."""

    def fails(result: object) -> Any:
        raise RuntimeError("a bug of ours")

    client = await login(raise_request_exception=False)
    url = await url_of(Tool, name="show")
    data = await typed(client, url, **AT)
    monkeypatch.setattr("mcp_app.admin.trying.presentation.parts_of", fails)
    settings.DEBUG = True
    handler = Mails(include_html=True)
    logger = logging.getLogger("django.request")
    logger.addHandler(handler)
    try:
        other.send = answer({"you sent": SECRET})
        response = await client.post(url, data)
        assert other.received[0].header("X-Partner") == [SECRET]
    finally:
        logger.removeHandler(handler)
    assert response.status_code == 500
    texts = [response.content.decode(), *handler.texts]
    assert len(texts) == 3
    for text in texts:
        assert "a bug of ours" in text
        assert SECRET not in text
