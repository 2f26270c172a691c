"""What the page *Who can see it* says of people is what their clients get."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission

from mcp_app.admin.access.visibility import Visibility, _people_rows
from mcp_app.admin.publishing.who_can_see import check_person
from mcp_app.auth.token_cache import token_cache
from mcp_app.catalog.registry import mcp as registry
from mcp_app.conf import BY_TOKEN
from mcp_app.models import AccessToken, Server, Stop, Tool
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from tests import behaviours
from tests.behaviours import has_short_name
from tests.published import published, stopped
from tests.scripting import STATELESS
from tests.serving import Connect

pytestmark = [
    pytest.mark.usefixtures("served_rows"),
    pytest.mark.parametrize("mcp", [{"AUTHENTICATION": BY_TOKEN}]),
]

PERMISSION: Final = "drill.view_ledger"
SHORT: Final = f"{has_short_name.__module__}.{has_short_name.__qualname__}"
CONDITIONS: Final[dict[str, dict[str, Any]]] = {
    "nothing": {},
    "permission": {"permission": PERMISSION},
    "unheard_of": {"permission": "drill.no_such"},
    "group": {"groups": "tellers\nporters"},
    "no_such_group": {"groups": "Tellers of tales"},
    "both": {"permission": PERMISSION, "groups": "tellers"},
    "rule": {"rule": SHORT},
    "no_such_rule": {"rule": "no.such"},
    "all": {"permission": PERMISSION, "groups": "tellers", "rule": SHORT},
    "stopped": {},
    "elsewhere": {"tags": "elsewhere"},
}


def _made() -> dict[str, Any]:
    make, suffix = get_user_model().objects.create_user, uuid4().hex[:3]
    people = {
        "plain": make(f"a{suffix}"),
        "granted": make(f"the-granted-{suffix}"),
        "teller": make(f"t{suffix}"),
        "porter": make(f"the-porter-{suffix}"),
        "inactive": make(f"i{suffix}", is_active=False),
        "boss": make(f"the-superuser-{suffix}", is_superuser=True),
    }
    tellers, porters = (Group.objects.create(name=n) for n in ("tellers", "porters"))
    permission = Permission.objects.get(codename="view_ledger")
    tellers.permissions.add(permission)
    people["granted"].user_permissions.add(permission)
    people["teller"].groups.add(tellers)
    people["porter"].groups.add(porters)
    people["inactive"].groups.add(tellers)
    servers = [
        published(_server("who")),
        published(_server("who-tellers", groups="tellers")),
        published(_server("who-granted", permission=PERMISSION)),
    ]
    rows = {
        name: published(_tool(f"who_{name}", **columns))
        for name, columns in CONDITIONS.items()
    }
    stopped(rows["stopped"])
    token = {"name": "a laptop", "may": "change"}
    bearers = {
        who: AccessToken.objects.make(user=user, **token)[1]
        for who, user in people.items()
    }
    others = [tellers, porters, *servers]
    return {"people": people, "bearers": bearers, "rows": rows, "others": others}


def _server(slug: str, **columns: Any) -> Server:
    return Server(slug=slug, access="token", selection="tags", tags="who", **columns)


def _tool(name: str, **columns: Any) -> Tool:
    config = '{"content": [{"type": "text", "text": "done"}]}'
    return Tool(name=name, config=config, **{"tags": "who", **columns})


def _erase(made: dict[str, Any]) -> None:
    for each in (*made["people"].values(), *made["rows"].values(), *made["others"]):
        each.delete()


@pytest.fixture
async def made(served_rows: None) -> AsyncIterator[dict[str, Any]]:
    made = await writer.run(_made)
    yield made
    await writer.run(_erase, made)


@pytest.fixture(autouse=True)
def _rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page looks at the rules of the site: here at those that are served."""
    for key, rule in behaviours.registry.rules.items():
        monkeypatch.setitem(registry.rules, key, rule)


def _said(made: dict[str, Any], slug: str) -> dict[tuple[str, str], tuple[bool, bool]]:
    """Return what the page says by person and row: the check, and the table."""
    said = {}
    for name, row in made["rows"].items():
        row.refresh_from_db()
        seen = Visibility(row, slug, list(Stop.objects.on()))
        listed, left = (
            set(_people_rows(seen.conditions, can=can).values_list("pk", flat=True))
            for can in (True, False)
        )
        assert not listed & left
        for who, user in made["people"].items():
            assert user.pk in listed | left
            alone = check_person(seen, user.get_username())["admitted"]
            counted = user.pk in listed and not seen.closed_reason
            said[who, name] = (alone, counted)
    return said


@pytest.mark.databases
@pytest.mark.parametrize("slug", ["who", "who-tellers", "who-granted"])
async def test_the_page_and_clients_agree(
    made: dict[str, Any], connect: Connect, process: Process, slug: str
) -> None:
    token_cache.forget_all()
    await process.gate.wait_for_check()
    said = await writer.run(_said, made, slug)
    assert set(said.values()) >= {(True, True), (False, False)}
    for who in made["people"]:
        headers = {"authorization": f"Bearer {made['bearers'][who]}"}
        client = await connect(STATELESS, path=f"/mcp/{slug}", headers=headers)
        answer = await client.request("tools/list")
        assert answer.status in (200, 401, 403)
        tools = answer.result["tools"] if answer.status == 200 else []
        listed = {each["name"] for each in tools}
        for name, row in made["rows"].items():
            alone, counted = said[who, name]
            assert (row.name in listed) is alone, (who, name)
            called = await client.call(row.name)
            runs = called.status == 200 and "result" in called.answer
            # A tool that is stopped says so to those who would see it.
            assert (runs and not called.result.get("isError")) is alone
            if row.rule == SHORT:
                # Nobody can be counted: all that remain may.
                assert counted or not alone, (who, name)
            else:
                assert counted is alone, (who, name)
