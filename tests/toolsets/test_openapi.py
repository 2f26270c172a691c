"""Tools of an OpenAPI document of this site: that of django-ninja, and others."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest
from django.contrib.auth.models import Permission, User
from django.core.checks import INFO
from django.core.management import call_command
from django.test import Client as Browser
from django.urls import clear_url_caches, path
from pytest_django import Settings

from mcp_app.catalog.registry import Registry, mcp
from mcp_app.checks import definitions, modules
from mcp_app.checks.definitions import check_definitions
from mcp_app.checks.modules import check_toolsets
from mcp_app.interface.principal import AccessRequest, Principal
from mcp_app.models import Tool
from mcp_app.protocol.json_types import JsonObject
from mcp_app.toolsets.site_views import OWN_RIGHTS, has_own_rights
from tests.admin.pages import page_of, text_of
from tests.toolsets import ninja_urls
from tests.toolsets.people import client_of, person, problem_of

DOCUMENT: Final = json.loads(Path(__file__).with_name("ninja.json").read_text("utf-8"))
TOOLS: Final = ["list_orders", "create_order", "get_order", "delete_order", "add_note"]


@pytest.fixture(autouse=True)
def site(settings: Settings, db: None) -> None:
    settings.ROOT_URLCONF = "tests.toolsets.ninja_urls"


def registry_of(document: Any = DOCUMENT, **options: Any) -> Registry:
    registry = Registry()
    registry.openapi(document, **options)
    return registry


def test_the_document_of_django_ninja() -> None:
    registry = registry_of(lambda: DOCUMENT, name="shop")
    names = [f"shop_shop_api_{name}" for name in (*TOOLS, "partner")]
    assert [*registry.tools] == names
    [remark] = registry.toolset_remarks
    assert "POST /ninja/orders/{number}/scan: is no tool: it wants multipart" in remark
    hints = {n: each.definition.hints for n, each in registry.tools.items()}
    assert [name for name in names if hints[name].read_only] == [
        names[i] for i in (0, 2, 5)
    ]
    assert [name for name in names if hints[name].destructive] == [names[3]]


def test_what_reaches_the_views() -> None:
    client = client_of(person("ada"), registry_of())
    arguments: JsonObject = {"state": "sent", "numbers": ["a&b", "c"], "limit": 5}
    data = client.call("shop_api_list_orders", **arguments).data
    assert data["query"] == {
        "state": ["sent"],
        "numbers": ["a&b", "c"],
        "limit": ["5"],
    }
    assert (data["user"], data["body"]) == ("ada", "")
    data = client.call("shop_api_create_order", number="ü", total=1.5).data
    assert data["kind"] == "application/json"
    assert json.loads(data["body"]) == {"number": "ü", "total": 1.5}
    note = {"number": "a b", "text": "x=1&y", "x_reason": "because"}
    data = client.call("shop_api_add_note", **note).data
    assert data["values"] == {"number": "a b"}
    assert data["kind"] == "application/x-www-form-urlencoded"
    assert (data["body"], data["reason"]) == ("text=x%3D1%26y", "because")
    assert client.call("shop_api_delete_order", order_id=1).text == "Done."
    refused = client.try_call("shop_api_partner")
    assert (refused.is_error, refused.text) == (True, "You may not do this.")


def test_paths_below_a_server() -> None:
    """As documents have them whose paths begin behind an address."""
    document = deepcopy(DOCUMENT)
    document["servers"] = [{"url": "https://shop.example.org/ninja/"}]
    paths = document["paths"].items()
    document["paths"] = {path.removeprefix("/ninja"): item for path, item in paths}
    registry = registry_of(document, only=["shop_api_get_order"])
    result = client_of(person("ada"), registry).call("shop_api_get_order", order_id=1)
    assert result.data["values"] == {"order_id": 1}


def test_documents_that_make_no_tools() -> None:
    def fail() -> JsonObject:
        raise LookupError("no API here")

    wrong: list[tuple[Any, str]] = [
        (fail, "stops with LookupError: no API here"),
        ({"swagger": "2.0"}, "This is Swagger 2.0."),
        ({}, "This is no OpenAPI document of 3.0, 3.1 or 3.2"),
        (lambda: None, "This is no OpenAPI document: it is no object."),
        (lambda: {"openapi": object()}, "Object of type object is not JSON"),
        (DOCUMENT["paths"], "This is no OpenAPI document of 3.0"),
    ]
    for document, sentence in wrong:
        assert sentence in problem_of(registry_of(document)), document
    unknown = problem_of(registry_of(only=["shop_api_list"]))
    assert "only names 'shop_api_list'. There is shop_api_list_orders, " in unknown


def test_what_is_no_view_of_the_site() -> None:
    look = {"get": {"operationId": "look", "responses": {}}}
    paths = dict.fromkeys(("/ninja/lost", "/mcp", "/ninja/partner"), look)
    registry = registry_of({"openapi": "3.1.0", "paths": paths})
    assert [*registry.tools] == ["look_3"]
    lost, ours = registry.toolset_remarks
    assert "GET /ninja/lost: is no tool: no URL of this site leads there." in lost
    assert "GET /mcp: is no tool: it is a page of mcp_app." in ours


def test_a_person_who_comes_with_fewer_rights() -> None:
    """As a site's own authenticator can let them in."""
    user = User.objects.create_user("ada")
    rights = Permission.objects.filter(codename__in=["view_user", "add_user"])
    user.user_permissions.set(rights)
    own = frozenset(user.get_all_permissions())
    for permissions, is_offered in (
        (None, True),
        (own, True),
        (own - {"auth.add_user"}, False),
    ):
        principal = Principal(kind="user", user_id="1", permissions=permissions)
        request = AccessRequest(principal=principal, server="default", user=user)
        assert has_own_rights(request) is is_offered
    nobody = AccessRequest(principal=Principal.ANONYMOUS, server="default")
    assert has_own_rights(nobody)
    [tool] = registry_of(only=["shop_api_partner"]).tools.values()
    assert tool.definition.demands.rules == (OWN_RIGHTS,)


def test_remarks_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    item: JsonObject = {"get": {"responses": {}}, "delete": {"responses": {}}}
    paths = {f"/ninja/{number}": item for number in range(21)}
    patterns = [path(f"ninja/{number}", ninja_urls.orders) for number in range(21)]
    monkeypatch.setattr(ninja_urls, "urlpatterns", patterns)
    clear_url_caches()
    registry = registry_of({"openapi": "3.1.0", "paths": paths})
    assert len(registry.tools) == 42
    registry.openapi(DOCUMENT)
    monkeypatch.setattr(modules, "mcp", registry)
    monkeypatch.setattr(definitions, "mcp", registry)
    # What is for decorators helps nobody here.
    assert {each.hint for each in check_definitions(None)} == {None}
    many, *lost = check_toolsets(None)
    assert (many.id, many.level) == ("mcp_app.I004", INFO)
    assert "makes 42 tools, and models choose worse from more than 40." in many.msg
    assert len(lost) == len(registry.toolset_remarks) - 1 > 1


def test_the_page_try_it_says_what_is_asked(
    admin_client: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = ("declared_tools", "toolsets", "ready_toolsets", "origins", "rules")
    for name in (*kept, "toolset_remarks"):
        monkeypatch.setattr(mcp, name, dict(getattr(mcp, name)))
    mcp.openapi(DOCUMENT, only=["shop_api_get_order"])
    call_command("mcp_sync", verbosity=0)
    row = Tool.objects.get(name="shop_api_get_order")
    text = text_of(admin_client, page_of(row, "try"))
    assert "Asks a view of this site: <code>GET /ninja/orders/{order_id}</code>" in text
    assert "mcp.openapi(Shop) GET /ninja/orders/{order_id}" in text_of(
        admin_client, row
    )
