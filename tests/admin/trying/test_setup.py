"""As whom something is tried, and who may: on the page, with real rights."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import AsyncClient

from mcp_app import Context
from mcp_app.admin.trying import setup
from mcp_app.models import AccessToken, Resource, ResourceTemplate, Server, Tool
from mcp_app.models.definitions import NOTHING, Source
from mcp_app.process.runtime import Process
from mcp_app.publishing.rights import RIGHTS
from tests.admin.trying.conftest import Login, Offer
from tests.admin.trying.console import (
    changed,
    label_of,
    result_of,
    run,
    send,
    text_of,
    typed,
)
from tests.audit.reading import kept
from tests.drill.models import Ledger

RUN: Final = ("view_tool", "try")
AS: Final = (*RUN, "try_as")


async def who(ctx: Context) -> str:
    """Says who calls, and what stands in the history by now."""
    lines = LogEntry.objects.values_list("change_message", flat=True)
    history = [str(each) async for each in lines]
    return json.dumps([ctx.principal.user_name, ctx.principal.client, history])


def enter() -> str:
    Ledger.objects.create(key="as", worker="a trial")
    return "entered"


@pytest.fixture
async def says(offer: Offer) -> str:
    """The page of a tool that says who calls."""
    return await offer("says", who, read_only=True)


@pytest.fixture
async def maria(process: Process) -> AsyncIterator[User]:
    user = await sync_to_async(User.objects.create_user)("maria")
    yield user
    await sync_to_async(user.delete)()


async def token_of(name: str, **columns: Any) -> AccessToken:
    def make() -> AccessToken:
        user = User.objects.get(username=name)
        servers = [Server.objects.get(slug=each) for each in columns.pop("at", ())]
        given = {"name": "laptop", "servers": servers, **columns}
        return AccessToken.objects.make(user=user, **given)[0]

    return await sync_to_async(make)()


async def test_as_oneself_and_as_nobody(login: Login, says: str) -> None:
    client = await login(*RUN)
    response = await run(client, says, server="private")
    assert json.loads(result_of(response)) == ["ana0", "ana0", []]
    assert response.context["tried_as"] == "as ana0"
    assert response.context["who_url"] == ""
    response = await run(client, says, server="private", who="nobody")
    assert label_of(response).startswith("Clients get 401 here")
    response = await run(client, says, server="pages", which="working", dry="1")
    assert json.loads(result_of(response))[:2] == ["", "ana0"]
    assert " · as nobody</p>" in text_of(response)


async def test_as_another_user(
    login: Login, says: str, maria: User, process: Process
) -> None:
    """That is in the history before the function runs."""
    client = await login(*AS)
    values = {"server": "private", "who": "user", "user": "maria", "dry": "1"}
    response = await run(client, says, **values)
    history = ["Tried it as maria."]
    assert json.loads(result_of(response)) == ["maria", "ana0", history]
    [call] = await kept(process)
    assert (call.user_name, call.principal_client) == ("maria", "ana0")
    assert call.client_name == "Try it, dry run"
    assert (
        "All that it wrote to the databases in its own thread was undone."
        in text_of(response)
    )


async def test_the_history_names_who_it_was(
    login: Login, says: str, maria: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MariaDB finds her by other spellings, too."""
    monkeypatch.setattr(setup, "find_user", {"Máriä": maria}.get)
    client = await login(*AS)
    values = {"server": "private", "who": "user", "user": "Máriä", "dry": "1"}
    response = await run(client, says, **values)
    assert json.loads(result_of(response))[2] == ["Tried it as maria."]
    assert response.context["tried_as"] == "as maria"


async def test_what_only_reads_and_dry_runs_as_another_user(
    login: Login, offer: Offer, maria: User, says: str
) -> None:
    writes = await offer("enters", enter)
    client, boss = await login(*AS, "publish"), await login()
    values = {"server": "private", "who": "user", "user": "maria"}
    for one, where, more, said in (
        (client, says, {}, "As somebody else there are only dry runs."),
        (boss, says, {}, "As somebody else there are only dry runs."),
        (client, writes, {"dry": "1"}, "Only what reads is run as somebody else."),
        (boss, writes, {}, "As somebody else there are only dry runs."),
        (boss, writes, {"dry": "1", "which": "working"}, "Only the published version"),
    ):
        data = await typed(one, where, **{"dry": None, **values, **more})
        response = await one.post(where, data)
        assert response.context["problem"].startswith(said)
        assert "shown" not in response.context
    assert not await LogEntry.objects.aexists()
    response = await run(boss, writes, **values, dry="1")
    assert result_of(response) == "entered"
    assert not await Ledger.objects.filter(key="as").aexists()
    assert await LogEntry.objects.acount() == 1


def read(rest: str) -> str:
    return rest


async def test_nothing_else_is_run_instead(
    login: Login, offer: Offer, maria: User, process: Process
) -> None:
    """The rules are about the template, and not about a resource that it covers."""
    await offer("covered", enter, Resource, uri="test://covered")
    url = await offer("covers", read, ResourceTemplate, uri_template="test://{+rest}")
    client = await login("view_resourcetemplate", "try", "try_as")
    values = {"server": "private", "who": "user", "user": "maria", "dry": "1"}
    response = await run(client, url, **values, rest="covered")
    assert label_of(response) == "It cannot run."
    assert "another definition answers" in response.context["shown"].sentence
    assert await kept(process) == []
    assert result_of(await run(client, url, **values, rest="a/b")) == "a/b"


async def test_a_server_that_lets_nobody_in(client: AsyncClient, says: str) -> None:
    response = await run(client, says, server="closed", which="working", dry="1")
    assert label_of(response).startswith("Clients get 401 here")
    page = text_of(await client.get(response.context["who_url"]))
    assert "The server lets nobody in." in page


async def test_only_superusers_try_as_one(login: Login, says: str) -> None:
    client, boss = await login(*AS), await login()
    values = {"server": "private", "who": "user", "dry": "1"}
    data = await typed(client, says, **values, user="ana1")
    response = await client.post(says, data)
    assert response.context["problem"] == "Only a superuser can try as a superuser."
    assert not await LogEntry.objects.aexists()
    response = await run(boss, says, **values, user="ana1")
    assert json.loads(result_of(response))[0] == "ana1"


@pytest.mark.parametrize("name", ["there-is-none", "", "gone", "a\0b", "a\u202eb"])
async def test_a_user_that_there_is_not(
    login: Login, says: str, maria: User, name: str
) -> None:
    client = await login(*AS)
    maria.username, maria.is_active = "gone", False
    await sync_to_async(maria.save)()
    values = {"server": "private", "who": "user", "dry": "1"}
    response = await client.post(says, await typed(client, says, **values, user=name))
    said = "There is no active user whose username is"
    assert response.context["problem"].startswith(said)
    assert "\u202e" not in response.context["problem"]


async def test_who_may_not_try_as_others_learns_nothing_of_them(
    login: Login, says: str, maria: User
) -> None:
    client = await login(*RUN)
    page = text_of(await client.get(says))
    assert "Another user" not in page
    assert "Name of the other user" not in page
    data = await typed(client, says, server="private", who="user", dry="1")
    told = set()
    for name in ("maria", "there-is-none", ""):
        response = await client.post(says, {**data, "user": name})
        told.add(response.context["problem"])
    assert told == {"This needs the right “Can try as another user”."}
    assert not await LogEntry.objects.aexists()


async def test_by_a_token(login: Login, offer: Offer) -> None:
    reads = await offer("reads", who, read_only=True)
    writes = await offer("writes", enter)
    client = await login(*RUN)
    assert "By a token of mine" not in text_of(await client.get(reads))
    token = await token_of("ana0", may="read", at=["private"])
    values = {"server": "private", "who": "token", "token": str(token.pk)}
    response = await run(client, reads, **values)
    assert json.loads(result_of(response))[0] == "ana0"
    response = await run(client, writes, **values, dry="1")
    assert label_of(response) != "Answered"
    assert not response.context["shown"].parts
    response = await run(client, writes, server="private", dry="1")
    assert result_of(response) == "entered"


async def test_a_token_that_does_not_open_the_server(
    login: Login, offer: Offer
) -> None:
    url = await offer("reads", who, read_only=True)
    client = await login(*RUN)
    other = await token_of("ana0", at=["guarded"])
    values = {"server": "private", "who": "token"}
    data = await typed(client, url, **values, token=str(other.pk))
    response = await client.post(url, data)
    assert response.context["problem"] == (
        "Clients get 401 here: This access token is not valid for this server."
    )
    mine = await token_of("ana0")
    data = await typed(client, url, **values, token=str(mine.pk))
    assert json.loads(result_of(await send(client, url, data)))[0] == "ana0"
    # It ends between the form and the run.
    await AccessToken.objects.filter(pk=mine.pk).aupdate(revoked="2026-01-01T00:00Z")
    response = await client.post(url, data)
    assert response.context["problem"] == "Choose one of your tokens."


async def test_a_token_of_somebody_else(
    login: Login, offer: Offer, maria: User
) -> None:
    url = await offer("reads", who, read_only=True)
    client = await login(*RUN)
    await token_of("ana0")
    hers = await token_of("maria")
    data = await typed(client, url, server="private", who="token")
    for key in (str(hers.pk), "", "x", "-1"):
        response = await client.post(url, {**data, "token": key})
        assert response.context["problem"] == "Choose one of your tokens."


async def test_a_working_copy_in_earnest_needs_the_right_to_publish(
    login: Login, offer: Offer
) -> None:
    url = await offer("enters", enter, publish=False)
    client, publisher = await login(*RUN), await login(*RUN, "publish")
    data = await typed(client, url, dry=None)
    response = await client.post(url, data)
    said = "Only who may publish runs a working copy for real."
    assert response.context["problem"].startswith(said)
    assert not await Ledger.objects.aexists()
    assert "was undone" in text_of(await run(client, url, dry="1"))
    assert result_of(await run(publisher, url, dry=None)) == "entered"
    await Ledger.objects.all().adelete()


async def test_what_was_changed_meanwhile_is_not_run_in_earnest(
    client: AsyncClient, offer: Offer
) -> None:
    url = await offer("enters", enter, publish=False)
    data = await typed(client, url, dry=None)
    await changed("enters", description="Another.")
    response = await client.post(url, data)
    said = "It was changed since this page was opened, so nothing was run."
    assert response.context["problem"].startswith(said)
    assert not await Ledger.objects.aexists()
    # All is undone: who has a second tab tries what is there now.
    assert result_of(await send(client, url, {**data, "dry": "1"})) == "entered"
    assert result_of(await run(client, url, dry=None)) == "entered"
    await Ledger.objects.all().adelete()


async def test_what_somebody_may_not_use_answers_as_on_the_wire(
    login: Login, offer: Offer
) -> None:
    url = await offer("hides", who, read_only=True, permission="shop.view_x")
    client = await login(*RUN)
    response = await run(client, url, server="private")
    assert response.context["shown"].look != "good"
    assert "hides" in response.context["shown"].sentence
    page = text_of(await client.get(response.context["who_url"]))
    assert "Unknown" not in page
    assert "shop.view_x" in page
    assert f'href="{response.context["who_url"]}"' in text_of(response)
    assert not response.context["shown"].parts


def rows() -> dict[str, object]:
    """Return how many rows there are of each table."""
    return {each.__name__: each._base_manager.count() for each in apps.get_models()}


STAFF: Final = [*RIGHTS, "view_tool", "change_tool", "add_tool", "delete_tool"]


async def test_who_may_open_and_press(login: Login, offer: Offer) -> None:
    """With each single right, and without a login."""
    url = await offer("enters", enter)
    boss = await login()
    data = await typed(boss, url, dry=None)
    clients: dict[str, AsyncClient] = {"": AsyncClient()}
    clients.update({right: await login(right) for right in STAFF})
    before = await sync_to_async(rows)()
    for right, client in clients.items():
        opened = await client.get(url)
        pressed = await client.post(url, data)
        if not right:
            assert (opened.status_code, pressed.status_code) == (302, 302)
            continue
        can_see = right in ("view_tool", "change_tool")
        assert opened.status_code == (200 if can_see else 403), right
        assert pressed.status_code == 403, right
        if can_see:
            page = text_of(opened)
            assert '<fieldset class="mcp-plain" disabled>' in page
            assert "Trying needs the right “Can try in the console”." in page
    assert await sync_to_async(rows)() == before
    both = await login(*RUN)
    assert "disabled" not in text_of(await both.get(url))
    mine = await typed(both, url, dry=None)
    assert result_of(await send(both, url, mine)) == "entered"
    await Ledger.objects.all().adelete()


async def test_who_is_no_staff(login: Login, adder: str) -> None:
    client = await login(*RUN)
    data = await typed(client, adder, a="1", b="2")
    await User.objects.filter(username="ana0").aupdate(is_staff=False)
    for response in (await client.get(adder), await client.post(adder, data)):
        assert response.status_code == 302


async def test_a_right_that_is_taken_between_form_and_run(
    login: Login, offer: Offer, process: Process
) -> None:
    url = await offer("enters", enter)
    client = await login(*RUN)
    data = await typed(client, url, dry=None)
    user = await User.objects.aget(username="ana0")
    await sync_to_async(user.user_permissions.clear)()
    assert (await client.post(url, data)).status_code == 403
    assert await kept(process) == []


async def test_strange_choices_are_as_none(client: AsyncClient, adder: str) -> None:
    data = await typed(client, adder, a="1", b="2")
    odd = {"revision": "1999-01-01", "who": "god", "which": "best", "can": "fly"}
    response = await send(client, adder, {**data, **odd})
    assert result_of(response) == "3"


def test_whose_working_copy_is_not_what_clients_see() -> None:
    """A row of what code declares has no version as long as nobody changes it."""
    assert setup.has_unpublished_changes(Tool(name="draft"))
    untouched = Tool(name="declared", source=Source.CODE, content_hash=NOTHING)
    assert not setup.has_unpublished_changes(untouched)
    untouched.content_hash = "of something else"
    assert setup.has_unpublished_changes(untouched)
