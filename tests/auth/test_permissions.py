"""What principals may: Django's permissions, kept for a short while."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from itertools import product
from typing import Any, Final
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db import OperationalError, transaction

from mcp_app import AccessRequest, Principal
from mcp_app.auth import caches
from mcp_app.auth import users as user_rows
from mcp_app.auth.permissions import RightsCache
from mcp_app.auth.users import UserRows
from mcp_app.interface.principal import Rule
from mcp_app.interface.rules import AccessRequirements
from mcp_app.invalidation.workers import here
from mcp_app.models import Change
from mcp_app.pools.database import authenticators, writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import Unavailable
from tests.asgi_client import Client
from tests.behaviours import SECRET
from tests.scripting import STATEFUL, STATELESS
from tests.serving import Connect

pytestmark = pytest.mark.usefixtures("served_rows", "each_way")

PERMISSION: Final = "view_secret"


def principal(user: Any, **more: Any) -> Principal:
    return Principal(kind="user", user_id=str(user.pk), **more)


def needs(*permissions: str, **more: Any) -> AccessRequirements:
    return AccessRequirements(permissions=permissions, **more)


NEEDS_SECRET: Final = needs(SECRET)


class Store(RightsCache):
    """What is asked for here is one permission, most of the time."""

    def __init__(self, rules: Mapping[str, Rule] = {}) -> None:
        super().__init__(rules)

    async def may(
        self, who: Principal, demands: AccessRequirements = NEEDS_SECRET
    ) -> bool:
        rights = await self.find(who, "default", frozenset({demands}))
        return rights.meets_demands(demands)


def _users() -> dict[str, Any]:
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
    who = principal(users[name])
    assert await Store().may(who) is may
    other = await Store().may(who, needs("shop.something_else"))
    assert other is (name == "superuser")


async def test_who_is_no_user_may_nothing() -> None:
    store = Store()
    for nobody in (
        Principal.ANONYMOUS,
        Principal(kind="badge", user_name="7"),
        Principal(kind="user", user_id="0"),
    ):
        assert not await store.may(nobody)


async def test_permissions_of_a_principal_stand_alone(
    users: dict[str, Any],
) -> None:
    """A token of a superuser may be for one thing only."""
    narrowed = principal(users["superuser"], permissions=frozenset({"shop.buy"}))
    assert await Store().may(narrowed, needs("shop.buy"))
    assert not await Store().may(narrowed)


async def test_rights_are_of_one_caller_server_and_need(
    users: dict[str, Any],
) -> None:
    rules = {"here": Rule("here", lambda asked: asked.server == "default")}
    plain = users["plain"]
    callers = [principal(plain), principal(users["granted"])]
    callers += [principal(plain, permissions=frozenset({SECRET}))]
    secret, here = NEEDS_SECRET, needs(rules=("here",))
    demands = [frozenset(each) for each in ({secret}, {here}, {secret, here})]
    asked = list(product(callers, ["default", "other"], demands))
    alone = [await RightsCache(rules).find(*each) for each in asked]
    assert len({each.met for each in alone}) == 4
    for order in (range(len(asked)), reversed(range(len(asked)))):
        store = RightsCache(rules)
        for at in order:
            assert await store.find(*asked[at]) == alone[at]


async def test_rights_are_read_again_after_their_hard_age(
    users: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site changes rights behind our back."""
    store, who = Store(), principal(users["granted"])
    assert await store.may(who)
    await writer.run(users["granted"].user_permissions.clear)
    assert await store.may(who)
    monkeypatch.setattr(caches, "MAX_AGE_S", 0)
    assert not await store.may(who)


async def test_a_database_that_is_away_says_nothing_about_rights(
    users: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(**_: str) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    with monkeypatch.context() as patched:
        patched.setattr(user_rows, "_active", away)
        with pytest.raises(Unavailable):
            await Store().may(principal(users["superuser"]))
    assert await Store().may(principal(users["superuser"]))


@pytest.mark.databases
async def test_users_are_fresh_rows(users: dict[str, Any]) -> None:
    rows, who = UserRows(), principal(users["plain"])
    first = await writer.run(rows.active_user, who)
    assert first is not None
    assert first.pk == users["plain"].pk
    assert await writer.run(rows.active_user, who) is not first
    assert await writer.run(rows.active_user, principal(users["inactive"])) is None
    assert await writer.run(rows.active_user, Principal(kind="badge")) is None
    nobody = Principal(kind="user", user_id="0")
    assert await writer.run(rows.active_user, nobody) is None


# -- groups and rules -----------------------------------------------------------


@pytest.mark.databases
@pytest.mark.parametrize(
    ("name", "may"),
    [("plain", False), ("member", True), ("superuser", True), ("inactive", False)],
)
async def test_groups(users: dict[str, Any], name: str, may: bool) -> None:
    """One of each set is enough; superusers are in all."""
    own = users["group"].name
    who = principal(users[name])
    either = AccessRequirements(groups=(frozenset({own, "x"}),))
    assert await Store().may(who, either) is may
    both = AccessRequirements(groups=(frozenset({own}), frozenset({"x"})))
    assert await Store().may(who, both) is (name == "superuser")


def short_name(asked: AccessRequest) -> bool:
    """Let in who has a short name, by whatever it came."""
    name = asked.user.username if asked.user else asked.principal.user_name
    return len(name) < 15 and asked.arguments is None and asked.server == "default"


def outage(asked: AccessRequest) -> bool:
    raise OperationalError("server closed the connection unexpectedly")


RULES: Final = {
    "short": Rule("short", short_name),
    "broken": Rule("broken", lambda asked: asked.nothing),  # type: ignore[attr-defined]
    "outage": Rule("outage", outage),
    "tells": Rule("tells", lambda asked: (False, "not today")),  # type: ignore[arg-type,return-value]
    "leaves": Rule("leaves", lambda asked: sys.exit("no")),
}


@pytest.mark.parametrize(
    ("rule", "name", "may"),
    [
        ("short", "ana", True),
        ("short", "ana-of-the-north", False),
        ("broken", "ana", False),
        ("missing", "ana", False),
        ("tells", "ana", False),
        ("leaves", "ana", False),
    ],
)
async def test_rules(rule: str, name: str, may: bool) -> None:
    """One that fails, or that code lacks, lets nobody in."""
    who = Principal(kind="badge", user_name=name)
    assert await Store(RULES).may(who, AccessRequirements(rules=(rule,))) is may


async def test_rules_bind_superusers_and_see_a_fresh_row(users: dict[str, Any]) -> None:
    demands = AccessRequirements(rules=("short",))
    assert await Store(RULES).may(principal(users["plain"]), demands)
    assert not await Store(RULES).may(principal(users["superuser"]), demands)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("broken", "A rule failed."),
        ("tells", "A rule returned tuple: it must return True or False."),
    ],
)
async def test_a_failing_rule_is_logged(
    rule: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    await Store(RULES).may(Principal(kind="badge"), needs(rules=(rule,)))
    assert [record.message for record in caplog.records] == [words]
    assert caplog.records[0].__dict__["rule"] == rule


async def test_an_outage_in_a_rule_is_not_blamed_on_the_caller() -> None:
    with pytest.raises(Unavailable):
        await Store(RULES).may(Principal(kind="badge"), needs(rules=("outage",)))


async def test_a_key_that_no_user_can_have(users: dict[str, Any]) -> None:
    who = Principal(kind="badge", user_id="not a number", permissions=frozenset())
    assert not await Store().may(who, AccessRequirements(groups=(frozenset({"x"}),)))


# -- over the endpoint ---------------------------------------------------------


BY_NAME: Final = {"AUTHENTICATION": {"header": "tests.auth.callables.by_name"}}


async def names(client: Client) -> set[str]:
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
    await process.gate.wait_for_check()
    assert "error" in (await client.call("secret")).answer


@pytest.mark.parametrize("mcp", [BY_NAME])
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
async def test_a_session_of_one_server(users: dict[str, Any], connect: Connect) -> None:
    headers = {"x-name": users["plain"].get_username()}
    client = await connect(STATEFUL, path="/mcp/private", headers=headers)
    client.path = "/mcp"
    assert (await client.request("ping")).status == 404
    client.path = "/mcp/private"
    assert (await client.request("ping")).status == 200


async def test_only_a_transaction_waits_for_other_processes(
    process: Process, users: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In autocommit mode the change is recorded when `save()` returns."""
    user, waits = users["granted"], []
    monkeypatch.setattr(here, "committed", lambda: waits.append(user))
    news = Change.objects.filter(kind="rights", ref=str(user.pk))
    before = await writer.run(news.count)
    user.is_active = False
    await authenticators.run(user.save)
    assert (await writer.run(news.count), waits) == (before + 1, [])

    def in_a_transaction() -> None:
        with transaction.atomic():
            user.save()

    await authenticators.run(in_a_transaction)
    assert (await writer.run(news.count), waits) == (before + 2, [user])
