"""Who may do what by the tools of the admin: what its pages let them, and no more."""

from __future__ import annotations

import random
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client as Browser
from django.urls import reverse
from pytest_django import Settings

from mcp_app.catalog.registry import Registry
from mcp_app.interface.errors import RegistrationError
from mcp_app.interface.principal import AccessRequest, Principal, Scope
from mcp_app.models import Server, Session
from mcp_app.test import Client
from mcp_app.toolsets.admin import is_active_staff
from tests.drill.models import Country, Item, Order, Stock
from tests.toolsets.browser import rows_of_site
from tests.toolsets.office import MODELS, office
from tests.toolsets.people import client_of, person

FORBIDDEN = "You may not do this."
VIEWS = {
    "changelist": "admin_list",
    "change": "admin_get",
    "add": "admin_form",
    "delete": "admin_delete",
}


@pytest.mark.parametrize("seed", range(20))
def test_the_tools_let_a_person_do_what_the_pages_let_them(
    shop: None, registry: Registry, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - no secret
    known = Permission.objects.filter(content_type__app_label="drill")
    codenames = sorted(known.values_list("codename", flat=True))
    user = person("somebody", *chance.sample(codenames, len(codenames) // 2))
    tools, browser = client_of(user, registry), Browser()
    browser.force_login(user)
    for _ in range(4):
        view, name = chance.choice([*VIEWS.items()])
        model = chance.choice(MODELS)
        row = model._default_manager.order_by("pk")[chance.randrange(2)]
        on_row = view in ("change", "delete")
        options = model._meta
        path = f"office:{options.app_label}_{options.model_name}_{view}"
        page = browser.get(reverse(path, args=[row.pk] if on_row else []))
        call = {
            "model": options.label_lower,
            **({"key": str(row.pk)} if on_row else {}),
        }
        result = tools.try_call(name, **call)
        assert (result.text == FORBIDDEN) == (page.status_code == 403), (name, call)
    listed = tools.call("admin_models").data["models"]
    for each in listed:
        _, model_name = each["model"].split(".")
        may = {
            verb for verb in each["may"] if user.has_perm(f"drill.{verb}_{model_name}")
        }
        assert may | {"view"} == {*each["may"]}


INLINE_ATTACKS: dict[str, tuple[tuple[str, ...], Any, str]] = {
    "change": ((), [{"key": "own", "amount": 9}], "items: there are no such rows here"),
    "change what is seen": (
        ("view_item",),
        [{"key": "own", "amount": 9}],
        "amount: it cannot be changed here.",
    ),
    "delete": (
        ("view_item", "change_item"),
        [{"key": "own", "delete": True}],
        ": you may not delete it.",
    ),
    "add": (
        ("view_item", "change_item", "delete_item"),
        [{"stock": "1"}],
        "items: you may not add rows.",
    ),
    "add too many": (
        ("view_item", "add_item"),
        [{"stock": "1"}] * 3,
        "items: there may be 3 rows.",
    ),
    "row of another": (
        ("view_item", "change_item"),
        [{"key": "other", "amount": 9}],
        ": no such row here.",
    ),
    "owner": (
        ("view_item", "change_item"),
        [{"key": "own", "order": "2"}],
        "order: no such field.",
    ),
    "twice": (
        ("view_item", "change_item"),
        [{"key": "own", "amount": 9}, {"key": "own", "amount": 8}],
        "it is there twice.",
    ),
}


@pytest.mark.parametrize("attack", INLINE_ATTACKS)
def test_who_may_change_a_row_may_not_change_what_belongs_to_it(
    shop: None, registry: Registry, attack: str
) -> None:
    rights, rows, sentence = INLINE_ATTACKS[attack]
    user = person("half", "view_order", "change_order", *rights)
    order = Order.objects.get(number="A-2")
    keys = {"own": order.items.get().pk, "other": Item.objects.first().pk}  # type: ignore[union-attr]
    items = [
        {name: keys.get(value, value) for name, value in row.items()} for row in rows
    ]
    before, tools = rows_of_site(), client_of(user, registry)
    call = {"model": "drill.order", "key": order.pk, "values": {"note": "mine"}}
    result = tools.try_call("admin_change", **call, inlines={"items": items})
    assert sentence in result.text
    assert rows_of_site() == before
    tools.call("admin_change", **call)
    assert order.items.get().amount == 3


def test_only_staff_with_all_their_rights_have_the_tools(
    shop: None, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    boss, visitor = person("boss", is_superuser=True), person("ana", is_staff=False)
    reading = client_of(boss, registry, scope=Scope(read_only=True)).tools()
    names = {each["name"] for each in client_of(boss, registry).tools()}
    assert {each["name"] for each in reading} == {*VIEWS.values(), "admin_models"} - {
        "admin_delete"
    }
    assert names == {*VIEWS.values(), "admin_models", "admin_add"} | {
        "admin_act",
        "admin_change",
    }
    client_of(visitor, registry).assertHidden("admin_list")
    for rights in (frozenset(), frozenset({"drill.view_order"})):
        narrow = Principal(kind="partner", user_id="1", permissions=rights)
        request = AccessRequest(principal=narrow, server="", user=boss)
        assert not is_active_staff(request)
    assert is_active_staff(AccessRequest.of_user(boss))
    # Such as a second factor.
    monkeypatch.setattr(office, "has_permission", lambda request: False)
    for call in ({"model": "drill.order"}, {"model": "drill.order", "page": 9}):
        assert (
            client_of(boss, registry).try_call("admin_list", **call).text == FORBIDDEN
        )
    result = client_of(boss, registry).try_call("admin_models")
    assert result.text == FORBIDDEN


def test_secrets_are_out_of_reach(shop: None, boss: User) -> None:
    registry = Registry()
    registry.admin_tools()
    tools = client_of(boss, registry)
    assert tools.call("admin_models").data["models"] == []
    for model in ("mcp_app.server", "auth.user", "auth.group", "admin.logentry"):
        assert tools.try_call("admin_list", model=model).is_error
    registry.admin_tools(name="people", models=[User], tags=["people"], only=["get"])
    answer = client_of(boss, registry).call(
        "people_get", model="auth.user", key=boss.pk
    )
    assert answer.data["values"]["username"] == "boss"
    assert "password" not in answer.data["values"]


UNMADE: dict[str, dict[str, Any]] = {
    "mcp_app.Server is for nobody but people in the admin.": {"change": [Server]},
    "mcp_app.Session is for nobody but people": {"models": [Session]},
    "drill.Item is not registered in the admin site 'office'.": {"change": [Item]},
    "only names 'add'. There is models, list, get, form.": {"only": ["add"]},
}


@pytest.mark.parametrize("sentence", UNMADE)
def test_a_line_that_asks_too_much_is_told(shop: None, sentence: str) -> None:
    registry = Registry()
    registry.admin_tools(**{"site": office, **UNMADE[sentence]})
    assert registry.tools == {}
    [problem] = registry.toolset_problems
    assert sentence in problem


def test_an_admin_must_have_an_address(settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.drill.urls"
    registry = Registry()
    registry.admin_tools(site=office, change=[Country, Stock])
    assert registry.tools == {}
    [problem] = registry.toolset_problems
    assert "the admin site 'office' is in no URLconf. Add path(" in problem
    with pytest.raises(RegistrationError, match="write a list"):
        registry.admin_tools(change="Order")


@pytest.fixture
def boss(shop: None) -> User:
    return person("boss", is_superuser=True)


def test_names_of_an_admin_of_its_own(shop: None, boss: User) -> None:
    registry = Registry()
    registry.admin_tools(site=office, name="office", change=[Stock])
    tools: Client = client_of(boss, registry)
    described = {each["name"]: each["description"] for each in tools.tools()}
    assert "office_act" in described["office_list"]
    assert described["office_add"].endswith("Models: drill.stock.")
