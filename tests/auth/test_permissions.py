"""What principals may: Django's permissions, kept for a short while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType

from mcp_app import Principal
from mcp_app.auth import permissions
from mcp_app.auth.permissions import Permissions, UserRows
from mcp_app.models import Change, Server
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import Unavailable
from tests.asgi_client import Client
from tests.behaviours import SECRET
from tests.scripting import STATEFUL, STATELESS
from tests.serving import Connect
from tests.statements import counted, failing

pytestmark = pytest.mark.usefixtures("served_rows")

PERMISSION: Final = "view_secret"


def principal(user: Any, **more: Any) -> Principal:
    return Principal(kind="user", user_id=str(user.pk), **more)


def _users() -> dict[str, Any]:
    """Make users of every kind, and the permission that behaviours ask for."""
    suffix = uuid4().hex[:8]
    made = get_user_model().objects.create_user
    content = ContentType.objects.create(app_label="shop", model=f"secret{suffix}")
    permission = Permission.objects.create(
        codename=PERMISSION, name="Can view", content_type=content
    )
    group = Group.objects.create(name=suffix)
    group.permissions.add(permission)
    users: dict[str, Any] = {
        name: made(f"{name}-{suffix}")
        for name in ("plain", "granted", "member", "superuser", "inactive")
    }
    users["granted"].user_permissions.add(permission)
    users["member"].groups.add(group)
    users["inactive"].user_permissions.add(permission)
    flags = {"superuser": {"is_superuser": True}, "inactive": {"is_active": False}}
    for name, columns in flags.items():
        get_user_model().objects.filter(pk=users[name].pk).update(**columns)
    return {**users, "permission": permission, "group": group, "content": content}


def _erase(users: dict[str, Any]) -> None:
    for each in users.values():
        each.delete()


@pytest.fixture
async def users(served_rows: None) -> AsyncIterator[dict[str, Any]]:
    made = await writer.run(_users)
    yield made
    await writer.run(_erase, made)


@pytest.mark.databases
@pytest.mark.parametrize(
    ("name", "may"),
    [
        ("plain", False),
        ("granted", True),
        ("member", True),
        ("superuser", True),
        ("inactive", False),
    ],
)
async def test_rights_of_users(users: dict[str, Any], name: str, may: bool) -> None:
    rights = await Permissions().of(principal(users[name]))
    assert (SECRET in rights) is may
    assert ("shop.something_else" in rights) is (name == "superuser")


async def test_who_is_no_user_may_nothing() -> None:
    store = Permissions()
    for nobody in (
        Principal.ANONYMOUS,
        Principal(kind="badge", user_name="7"),
        Principal(kind="user", user_id="0"),
    ):
        assert SECRET not in await store.of(nobody)


async def test_permissions_of_a_principal_stand_for_themselves(
    users: dict[str, Any],
) -> None:
    """A token of a superuser may be for one thing only."""
    narrowed = principal(users["superuser"], permissions=frozenset({"shop.buy"}))
    assert await Permissions().of(narrowed) == {"shop.buy"}


async def test_rights_are_kept_for_a_while(users: dict[str, Any]) -> None:
    store, who = Permissions(), principal(users["granted"])
    async with counted() as told:
        assert SECRET in await store.of(who)
        read = len(told)
        assert SECRET in await store.of(who)
        assert (read > 0, len(told)) == (True, read)


async def test_rights_are_read_again_after_their_hard_age(
    users: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site changes rights behind our back."""
    store, who = Permissions(), principal(users["granted"])
    assert SECRET in await store.of(who)
    await writer.run(users["granted"].user_permissions.clear)
    assert SECRET in await store.of(who)
    monkeypatch.setattr(permissions, "HARD_AGE", 0)
    assert SECRET not in await store.of(who)


async def test_forgetting_reads_all_rights_again(users: dict[str, Any]) -> None:
    store, who = Permissions(), principal(users["granted"])
    assert SECRET in await store.of(who)
    await writer.run(users["granted"].user_permissions.clear)
    store.forget()
    assert SECRET not in await store.of(who)


async def test_what_is_read_while_all_is_forgotten_is_not_kept(
    users: dict[str, Any],
) -> None:
    store, who = Permissions(), principal(users["granted"])
    reading = asyncio.ensure_future(store.of(who))
    await asyncio.sleep(0)
    store.forget()
    assert SECRET in await reading
    await writer.run(users["granted"].user_permissions.clear)
    assert SECRET not in await store.of(who)


async def test_the_store_does_not_grow_without_end(
    users: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(permissions, "KEPT", 2)
    store = Permissions()
    for name in ("plain", "granted", "member"):
        await store.of(principal(users[name]))
    assert len(store._kept) == 1


async def test_a_database_that_is_away_says_nothing_about_rights(
    users: dict[str, Any],
) -> None:
    async with failing():
        with pytest.raises(Unavailable):
            await Permissions().of(principal(users["superuser"]))
    assert SECRET in await Permissions().of(principal(users["superuser"]))


@pytest.mark.databases
async def test_users_are_fresh_rows(users: dict[str, Any]) -> None:
    rows, who = UserRows(), principal(users["plain"])
    first = await writer.run(rows.user, who)
    assert first is not None
    assert first.pk == users["plain"].pk
    assert await writer.run(rows.user, who) is not first
    assert await writer.run(rows.user, principal(users["inactive"])) is None
    assert await writer.run(rows.user, Principal(kind="badge")) is None
    assert await writer.run(rows.user, Principal(kind="user", user_id="0")) is None


# -- over the endpoint ---------------------------------------------------------


BY_NAME: Final = {"AUTHENTICATION": {"header": "tests.auth.callables.by_name"}}


async def names(client: Client) -> set[str]:
    """Return the names of all tools that a client sees."""
    found: set[str] = set()
    params: dict[str, Any] = {}
    while True:
        result = (await client.request("tools/list", params)).result
        found |= {tool["name"] for tool in result["tools"]}
        if "nextCursor" not in result:
            return found
        params = {"cursor": result["nextCursor"]}


@pytest.mark.parametrize("mcp", [BY_NAME])
@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
@pytest.mark.covers("L-TOOLS-006", "L-TOOLS-049", "S-TOOLS-047")
async def test_each_user_sees_and_calls_what_is_theirs(
    users: dict[str, Any], connect: Connect, version: str
) -> None:
    for name in ("plain", "granted", "superuser", "inactive"):
        headers = {"x-name": users[name].get_username()}
        client = await connect(version, path="/mcp/private", headers=headers)
        may = name in ("granted", "superuser")
        assert ("secret" in await names(client)) is may
        outcome = await client.call("secret")
        if may:
            assert "isError" not in outcome.result
        else:
            unheard_of = await client.call("secret_of_nobody")
            assert outcome.error["code"] == unheard_of.error["code"]
            assert outcome.error["message"] == "Unknown tool: secret"


@pytest.mark.databases
@pytest.mark.parametrize("mcp", [BY_NAME])
async def test_a_change_of_rights_counts_after_any_change_that_is_told(
    users: dict[str, Any], connect: Connect, process: Process
) -> None:
    headers = {"x-name": users["granted"].get_username()}
    client = await connect(STATELESS, path="/mcp/private", headers=headers)
    assert "isError" not in (await client.call("secret")).result
    await writer.run(users["granted"].user_permissions.clear)
    await writer.run(Change.objects.record, "server")
    await process.gate.look()
    assert "error" in (await client.call("secret")).answer


@pytest.mark.parametrize("mcp", [BY_NAME])
@pytest.mark.covers("S-ELICIT-036", "S-HTTP-079")
async def test_sessions_belong_to_their_principal(
    users: dict[str, Any], connect: Connect
) -> None:
    """Somebody else's session does not exist, and says so in the same bytes."""
    mine = {"x-name": users["plain"].get_username()}
    theirs = {"x-name": users["granted"].get_username()}
    client = await connect(STATEFUL, path="/mcp/private", headers=mine)
    assert (await client.request("ping")).status == 200
    other = await connect(STATEFUL, path="/mcp/private", headers=theirs)
    own, other.session = other.session, client.session
    message = other.message("ping", id=1)
    foreign = await other.sent(message)
    other.session = "unknown-" + (own or "")
    unknown = await other.sent(message)
    assert foreign.status == unknown.status == 404
    assert foreign.raw == unknown.raw
    assert dict(foreign.headers) == dict(unknown.headers)
    for method in ("GET", "DELETE"):
        other.session = client.session
        found = await other.visit(method).body()
        other.session = "unknown"
        assert found == await other.visit(method).body()
    assert (await client.request("ping")).status == 200


@pytest.mark.parametrize("mcp", [BY_NAME])
async def test_a_session_of_another_server_does_not_exist(
    users: dict[str, Any], connect: Connect
) -> None:
    headers = {"x-name": users["plain"].get_username()}
    client = await connect(STATEFUL, path="/mcp/private", headers=headers)
    client.path = "/mcp"
    assert (await client.request("ping")).status == 404
    client.path = "/mcp/private"
    assert (await client.request("ping")).status == 200


@pytest.mark.parametrize("mcp", [BY_NAME])
async def test_a_server_that_was_closed_answers_401(
    users: dict[str, Any], connect: Connect, process: Process
) -> None:
    headers = {"x-name": users["plain"].get_username()}
    client = await connect(STATELESS, path="/mcp/private", headers=headers)
    assert (await client.request("tools/list")).status == 200
    rows = Server.objects.filter(slug="private")
    await writer.run(rows.update, access="header unheard_of")
    await process.gate.look()
    try:
        refused = await client.request("tools/list")
    finally:
        await writer.run(rows.update, access="header")
    assert refused.status == 401
    assert refused.headers["www-authenticate"] == 'Bearer realm="mcp"'
