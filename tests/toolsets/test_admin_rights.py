"""Who may do what by the tools of the admin: what its pages let them, and no more."""

from __future__ import annotations

import random
from typing import Any

import pytest
from django.contrib.admin import AdminSite
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.test import Client as Browser
from django.test.utils import isolate_apps
from django.urls import reverse
from pytest_django import Settings

from mcp_app.catalog.registry import Registry
from mcp_app.interface.principal import AccessRequest, Principal, Scope
from mcp_app.models import Server, Session
from mcp_app.test import Client
from mcp_app.toolsets import admin
from mcp_app.toolsets.admin import is_active_staff
from tests.drill.models import Country, Item, Order, Stock
from tests.toolsets.browser import rows_of_site
from tests.toolsets.office import MODELS, office
from tests.toolsets.people import client_of, person, problem_of

FORBIDDEN = "You may not do this."
VIEWS = {
    "changelist": "admin_list",
    "change": "admin_get",
    "add": "admin_form",
    "delete": "admin_delete",
}


def test_the_tools_let_a_person_do_what_the_pages_let_them(
    shop: None, registry: Registry
) -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    permissions = [*Permission.objects.filter(content_type__app_label="drill")]
    statuses = set()
    for number in range(20):
        user, browser = person(f"person {number}"), Browser()
        user.user_permissions.set(chance.sample(permissions, len(permissions) // 2))
        tools = client_of(user, registry)
        browser.force_login(user)
        for view in chance.sample([*VIEWS], 2):
            model = chance.choice(MODELS[:-1])
            row = model._default_manager.order_by("pk")[chance.randrange(2)]
            on_row = view in ("change", "delete")
            path = f"office:{model._meta.label_lower.replace('.', '_')}_{view}"
            page = browser.get(reverse(path, args=[row.pk] if on_row else []))
            call = {"model": model._meta.label_lower}
            call |= {"key": str(row.pk)} if on_row else {}
            result = tools.try_call(VIEWS[view], **call)
            assert (result.text == FORBIDDEN) == (page.status_code == 403), call
            statuses.add(page.status_code)
        for each in tools.call("admin_models").data["models"]:
            app, name = each["model"].split(".")
            rights = {
                verb for verb in each["may"] if user.has_perm(f"{app}.{verb}_{name}")
            }
            assert rights | {"view"} == {*each["may"]}
    assert statuses >= {200, 403}


OWN: dict[str, Any] = {"key": "own"}
INLINE_ATTACKS: list[tuple[list[str], list[dict[str, Any]], str]] = [
    ([], [{**OWN, "amount": 9}], "items: there are no such rows here"),
    (["view_item"], [{**OWN, "amount": 9}], "amount: it cannot be changed here."),
    (
        ["view_item", "change_item"],
        [{**OWN, "delete": True}],
        ": you may not delete it.",
    ),
    (
        ["view_item", "change_item", "delete_item"],
        [{"stock": "1"}],
        "items: you may not add rows.",
    ),
    (["view_item", "add_item"], [{"stock": "1"}] * 3, "items: there may be 3 rows."),
    (["change_item"], [{"key": "other", "amount": 9}], ": no such row here."),
    (["change_item"], [{**OWN, "order": "2"}], "order: no such field."),
    (["change_item"], [{**OWN, "amount": 9}, OWN], "it is there twice."),
]


def test_who_may_change_a_row_may_not_change_what_belongs_to_it(
    shop: None, registry: Registry
) -> None:
    order = Order.objects.get(number="A-2")
    other = Item.objects.exclude(order=order).earliest("pk")
    keys = {"own": order.items.get().pk, "other": other.pk}
    for number, (rights, rows, sentence) in enumerate(INLINE_ATTACKS):
        user = person(f"person {number}", "view_order", "change_order", *rights)
        tools, before = client_of(user, registry), rows_of_site()
        items = [
            {name: keys.get(value, value) for name, value in row.items()}
            for row in rows
        ]
        call = {"model": "drill.order", "key": order.pk, "values": {"note": sentence}}
        result = tools.try_call("admin_change", **call, inlines={"items": items})
        assert sentence in result.text
        assert rows_of_site() == before
        tools.call("admin_change", **call)
        assert order.items.get().amount == 3
        choices = {"model": "drill.order", "key": order.pk, "field": "customer"}
        assert tools.try_call("admin_form", **choices).text == FORBIDDEN


def test_who_may_only_look_changes_nothing(shop: None, registry: Registry) -> None:
    tools = client_of(person("guest", "view_order"), registry)
    before, order = rows_of_site(), Order.objects.get(number="A-2")
    call = {"model": "drill.order", "key": order.pk}
    result = tools.try_call("admin_change", **call, values={"note": "mine"})
    assert result.text == "note: it cannot be changed here."
    assert tools.try_call("admin_change", **call).text == FORBIDDEN
    assert tools.try_call("admin_delete", **call).text == FORBIDDEN
    # All of it is read-only: texts as people see them.
    values = tools.call("admin_get", **call).data["values"]
    assert (values["state"], values["customer"]) == ("Waits to be sent", "Ana")
    act = {"model": "drill.order", "action": "send", "keys": [order.pk]}
    result = tools.try_call("admin_act", **act)
    assert result.text.startswith("There is no action “send”; there is: export, ")
    assert rows_of_site() == before


def test_only_staff_with_all_their_rights_have_the_tools(
    boss: User, tools: Client, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = client_of(boss, registry, scope=Scope(read_only=True)).tools()
    names = {each["name"] for each in tools.tools()}
    changing = {f"admin_{each}" for each in ("add", "change", "delete", "act")}
    assert names == {*VIEWS.values(), "admin_models"} | changing
    assert {each["name"] for each in reading} == names - changing
    visitor = client_of(person("ana", is_staff=False), registry)
    visitor.assertHidden("admin_list")
    narrow = Principal(kind="partner", user_id="1", permissions=frozenset())
    request = AccessRequest(principal=narrow, server="", user=boss)
    assert not is_active_staff(request)
    assert is_active_staff(AccessRequest.of_user(boss))
    # Such as a second factor.
    monkeypatch.setattr(office, "has_permission", lambda request: False)
    for page in (1, 9):
        result = tools.try_call("admin_list", model="drill.order", page=page)
        assert result.text == FORBIDDEN
    assert tools.try_call("admin_models").text == FORBIDDEN


def test_secrets_are_out_of_reach(boss: User) -> None:
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


def model_of(name: str, app: str, base: Any = models.Model, **fields: Any) -> Any:
    meta = type("Meta", (), {"app_label": app, "abstract": app != "drill"})
    return type(name, (base,), {"__module__": __name__, "Meta": meta, **fields})


def refusal(site: AdminSite, model: Any) -> str:
    registry = Registry()
    registry.admin_tools(site=site, models=[model])
    return problem_of(registry)


@isolate_apps("tests.drill")
def test_a_developer_reads_which_models_are_left_out(
    boss: User, settings: Settings
) -> None:
    vault = model_of("Vault", "drill", api_keys=models.CharField())
    title = property(lambda row: f"Card {row.badge_key}")
    text: dict[str, Any] = {"__str__": lambda row: row.title, "title": title}
    card = model_of("Card", "drill", badge_key=models.CharField(), **text)
    owner = models.ForeignKey(card, models.CASCADE)
    door = model_of("Door", "drill", owner=owner)
    invitation = model_of("InviteCode", "drill", code=models.CharField())
    phone = model_of("Phone", "drill", model_of("Device", "django_otp"))
    settings.OAUTH2_PROVIDER_GRANT_MODEL = "drill.Country"
    site, registry = AdminSite(name="office"), Registry()
    site.register([vault, invitation, phone, Country, Stock, User, card, door])
    registry.admin_tools(site=site)
    assert registry.tools
    [remark] = registry.toolset_remarks
    names = ("card", "country", "door", "invitecode", "phone", "vault")
    left_out = ", ".join(f"drill.{each}" for each in names)
    assert f"mcp.admin_tools() leaves out {left_out}, which may hold" in remark
    assert "drill.Card cannot be named: the key or the text" in refusal(site, card)
    visit = model_of("Visit", "drill", AbstractBaseSession)
    assert "drill.Visit is for nobody but people in the" in refusal(site, visit)
    # Who names it sees no code of a grant.
    registry = Registry()
    registry.admin_tools(site=office, models=[Country])
    country, tools = Country.objects.get(code="PT"), client_of(boss, registry)
    call = {"model": "drill.country", "key": country.pk}
    values = tools.call("admin_get", **call).data["values"]
    assert (values["name"], "code" in values) == ("PT", False)
    assert "code" not in tools.call("admin_form", **call).text
    refused = {"search": "it would look at a secret", "sort": "is sorted by a secret"}
    for name, told in refused.items():
        asked = {"model": "drill.country", name: "initial"}
        assert told in tools.try_call("admin_list", **asked).text


UNMADE: dict[str, dict[str, Any]] = {
    "the admin site 'lost' is in no URLconf. Add path(": {"site": AdminSite("lost")},
    "mcp_app.Server is for nobody but people in the admin.": {"change": [Server]},
    "mcp_app.Session is for nobody but people": {"models": [Session]},
    "drill.Item is not registered in the admin site 'office'.": {"change": [Item]},
    "'drill.Order' is no model, such as Order.": {"change": ["drill.Order"]},
    "site is 'office', and no AdminSite.": {"site": "office"},
    "only names 'add'. There is models, list, get, form.": {"only": ["add"]},
}


def test_a_line_that_asks_too_much_is_told(shop: None) -> None:
    for sentence, options in UNMADE.items():
        registry = Registry()
        registry.admin_tools(**{"site": office, **options})
        assert sentence in problem_of(registry)


def test_names_of_an_admin_of_its_own(
    boss: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "MAX_NAMES", 1)
    for change, names in (
        ([Stock], "drill.stock."),
        ([Stock, Order], "drill.stock, and others."),
    ):
        registry = Registry()
        registry.admin_tools(site=office, name="office", change=change)
        listed = client_of(boss, registry).tools()
        described = {each["name"]: each["description"] for each in listed}
        assert "office_act" in described["office_list"]
        assert described["office_add"].endswith(f"Models: {names}")
