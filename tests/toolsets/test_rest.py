"""Tools of a view of Django REST framework, held against requests over HTTP."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import transaction
from django.test import Client as Browser
from django.utils import timezone
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from pytest_django import Settings
from rest_framework.permissions import AllowAny, DjangoModelPermissions

from mcp_app.catalog.registry import Registry
from mcp_app.checks import definitions
from mcp_app.models import Server
from mcp_app.test import Client
from mcp_app.test.results import Result
from tests.auth.test_drf import run
from tests.drill.models import Customer, Order, Stock
from tests.toolsets.people import client_of, person, problem_of

URLS: Final = "tests.toolsets.api"
NAMED: Final = "tests.auth.drf_classes.NamedToken"
FORM: Final = "application/x-www-form-urlencoded"
CREATED: Final = "2026-11-28T10:00:00Z"
NEW: Final = {"number": "N-1", "total": "12.50", "created": CREATED}
SENTENCES: Final[Mapping[int, str]] = {
    204: "Done.",
    401: "You may not do this.",
    403: "You may not do this.",
}

CALLS: Final[list[tuple[str, dict[str, Any], str, str]]] = [
    ("orders_list", {}, "GET", "/api/orders/"),
    ("orders_list", {"page": 2, "size": 3}, "GET", "/api/orders/"),
    ("orders_list", {"page": 9}, "GET", "/api/orders/"),
    ("orders_list", {"state": "sent"}, "GET", "/api/orders/"),
    ("orders_list", {"search": "a&"}, "GET", "/api/orders/"),
    ("orders_list", {"ordering": "-total"}, "GET", "/api/orders/"),
    ("orders_retrieve", {"id": 1}, "GET", "/api/orders/1/"),
    ("orders_retrieve", {"id": 4}, "GET", "/api/orders/4/"),
    ("orders_retrieve", {"id": 99}, "GET", "/api/orders/99/"),
    ("orders_export", {}, "GET", "/api/orders/export/"),
    ("orders_create", NEW, "POST", "/api/orders/"),
    ("orders_create", {**NEW, "number": "A-1"}, "POST", "/api/orders/"),
    ("orders_create", {**NEW, "total": "-1.00", "customer": 9}, "POST", "/api/orders/"),
    ("orders_partial_update", {"id": 1, "total": "3.00"}, "PATCH", "/api/orders/1/"),
    ("orders_partial_update", {"id": 3, "total": "3.00"}, "PATCH", "/api/orders/3/"),
    ("orders_destroy", {"id": 1}, "DELETE", "/api/orders/1/"),
    # Formats and types of a document only describe: the view is the judge.
    ("orders_create", {**NEW, "created": "2026-11-28T10:00"}, "POST", "/api/orders/"),
    ("orders_create", {**NEW, "total": 1.1, "number": 5}, "POST", "/api/orders/"),
    ("orders_create", {**NEW, "total": None}, "POST", "/api/orders/"),
    ("orders_partial_update", {"id": 1, "customer": None}, "PATCH", "/api/orders/1/"),
    ("orders_list", {"state": "unheard"}, "GET", "/api/orders/"),
    ("orders_list", {"state": ""}, "GET", "/api/orders/"),
    ("stock_retrieve", {"sku": 7}, "GET", "/api/stock/7/"),
    ("orders_send", {"id": 1}, "POST", "/api/orders/1/send/"),
    ("orders_send", {"id": 2}, "POST", "/api/orders/2/send/"),
    ("orders_note", {"id": 1, "note": "x"}, "POST", "/api/orders/1/add-note/"),
    ("orders_unnote", {"id": 1}, "DELETE", "/api/orders/1/add-note/"),
    ("stock_retrieve", {"sku": "ü 1"}, "GET", "/api/stock/ü 1/"),
    ("stock_create", {"sku": "b&", "price": "2.00"}, "POST", "/api/stock/"),
    ("hello_retrieve", {}, "GET", "/api/hello/"),
]


@pytest.fixture(autouse=True)
def site(settings: Settings, db: None) -> None:
    settings.ROOT_URLCONF = URLS
    settings.REST_FRAMEWORK = {"DEFAULT_AUTHENTICATION_CLASSES": [NAMED]}
    cache.clear()
    customer = Customer.objects.create(pk=1, name="Ada", email="ada@example.org")
    for pk, (number, state) in enumerate(
        [("A-1", "open"), ("A&2", "sent"), ("B-3", "back"), ("S-4", "open")], 1
    ):
        row = Order(pk=pk, number=number, state=state, customer=customer, margin=3)
        row.total, row.created = 10 * pk, timezone.now()
        row.save()
    Stock.objects.create(sku="ü 1", price=1)
    for name, rights in PEOPLE.items():
        person(name, *rights, is_staff=name == "ana")
    Server.objects.update(access="public")


@pytest.fixture
def api(site: None) -> Any:
    """The module of the views, which reads the settings."""
    return import_module(URLS)


PEOPLE: Final = {
    "ana": ["add_order", "change_order", "delete_order"],
    "ben": ["add_order", "change_order"],
    "cy": [],
}


def tools_of(view: Any, **options: Any) -> Registry:
    registry = Registry()
    registry.rest(view, **options)
    return registry


def registry_of(**options: Any) -> Registry:
    api = import_module(URLS)
    registry = tools_of(api.OrderViewSet, **{"version": "1", **options})
    for view in (api.StockViewSet, api.StockListView, api.hello):
        registry.rest(view)
    assert registry.toolset_problems == {}
    return registry


def client_named(name: str, registry: Registry | None = None) -> Client:
    user = User.objects.filter(username=name).first()
    return client_of(user, registry or registry_of())


def answer_over_http(
    name: str, arguments: Mapping[str, Any], method: str, path: str
) -> Any:
    """Return what a person's token gets, with what is no part of the path sent."""
    sent = {n: each for n, each in arguments.items() if f"/{each}/" not in path}
    token = {} if name == "nobody" else {"Authorization": f"Token {name}"}
    headers = {"Host": "127.0.0.1", "Accept": "application/json; version=1", **token}
    browser: Any = Browser(headers=headers)
    if method == "GET":
        return browser.get(path, sent)
    if path == "/api/stock/":
        return browser.generic(method, path, urlencode(sent), FORM)
    return browser.generic(method, path, json.dumps(sent), "application/json")


@pytest.mark.parametrize("name", [*PEOPLE, "nobody"])
def test_each_answer_is_that_over_http(name: str, subtests: Any) -> None:
    client = client_named(name)
    listed = {each["name"] for each in client.tools()}
    for tool, arguments, method, path in CALLS:
        cache.clear()
        with transaction.atomic():
            response = answer_over_http(name, arguments, method, path)
            rows = [*Order.objects.order_by("pk").values()]
            transaction.set_rollback(True)
        cache.clear()
        with subtests.test(tool, **arguments), transaction.atomic():
            if tool in listed:
                check_alike(client.try_call(tool, **arguments), response)
                assert [*Order.objects.order_by("pk").values()] == rows
            else:
                assert response.status_code in (401, 403)
                client.assertHidden(tool)
            transaction.set_rollback(True)


def check_alike(result: Result, response: Any) -> None:
    """Fail unless a tool says what its view said over HTTP."""
    status = response.status_code
    assert result.is_error == (status >= 400), result.text
    if status in SENTENCES:
        assert result.text == SENTENCES[status]
    elif status == 404:
        assert result.text == response.json()["detail"]
    elif response["Content-Type"] != "application/json":
        assert result.text == response.content.decode()
    elif status < 400:
        assert result.data == response.json()
    else:
        assert {*result.text.split("\n")} == {*lines_of(response.json())}


def lines_of(problems: Any) -> Iterator[str]:
    for name, texts in problems.items():
        for text in texts if isinstance(texts, list) else [texts]:
            yield text if name == "detail" else f"{name}: {text}"


def test_a_throttle_counts_calls_and_requests_alike() -> None:
    client = client_named("ana")
    for number in (1, 2):
        assert client.try_call("orders_send", id=number).is_error == (number == 2)
    send = "POST", "/api/orders/1/send/"
    assert answer_over_http("ana", {"id": 1}, *send).status_code == 409
    response = answer_over_http("ana", {"id": 1}, *send)
    assert response.status_code == 429
    refused = client.try_call("orders_send", id=1)
    wait = int(re.sub("[^0-9]", "", refused.text))
    assert refused.is_error
    assert refused.text == f"Try again in {wait} seconds."
    assert 0 <= int(response["Retry-After"]) - wait <= 5
    # It is the throttle of a person.
    assert answer_over_http("ben", {"id": 1}, *send).status_code == 409


def test_what_is_listed() -> None:
    declared = registry_of().tools
    tools: Any = {name: each.definition for name, each in declared.items()}
    names = "list create export retrieve partial_update destroy note unnote send"
    assert [*tools][:9] == [f"orders_{each}" for each in names.split()]
    assert tools["orders_list"].description == "List orders. Orders of the shop."
    assert tools["orders_send"].description == "Send an order to its customer."
    assert tools["hello_create"].description == "Greet whoever calls."
    required = {n: each.input_schema.get("required") for n, each in tools.items()}
    assert {*required["orders_create"]} == {"number", "total", "created"}
    # Nobody has said what sending takes, and somebody has for the note.
    assert required["orders_send"] == ["id"]
    assert required["orders_note"] == ["id", "note"]
    properties = {n: each.input_schema["properties"] for n, each in tools.items()}
    assert properties["orders_create"]["margin"]["default"] == 7
    assert "default" not in properties["orders_partial_update"]["margin"]
    assert tools["orders_list"].demands.permissions == ()
    assert tools["orders_create"].demands.permissions == ("drill.add_order",)
    hints = {n: each.hints.to_wire() for n, each in tools.items()}
    assert {each.pop("openWorldHint") for each in hints.values()} == {False}
    assert hints["orders_list"] == {"readOnlyHint": True, "destructiveHint": False}
    assert hints["orders_create"] == {"readOnlyHint": False, "destructiveHint": False}
    assert hints["stocks_create"] == hints["orders_create"]
    # Nobody knows what an action does.
    assert hints["orders_send"] == {"readOnlyHint": False}
    assert hints["orders_destroy"] == {"readOnlyHint": False, "destructiveHint": True}


def test_options() -> None:
    options = {"only": ["list", "send"], "name": "shop"}
    registry = registry_of(permission="drill.view_order", **options)
    assert [*registry.tools][:2] == ["shop_list", "shop_send"]
    demands = registry.tools["shop_send"].definition.demands
    assert demands.permissions == ("drill.view_order", "drill.add_order")


def test_a_view_that_asks_who_calls_decides_at_the_call(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def permissions(view: Any) -> list[Any]:
        is_ana = str(getattr(view.request, "user", None)) == "ana"
        return [AllowAny()] if is_ana else [DjangoModelPermissions()]

    monkeypatch.setattr(api.StockViewSet, "get_permissions", permissions)
    registry = tools_of(api.StockViewSet)
    for name, is_let_in in (("ana", True), ("cy", False)):
        new = {"sku": "b", "price": "2.00"}
        told = client_named(name, registry).try_call("stock_create", **new)
        assert told.is_error != is_let_in


def test_versions(api: Any) -> None:
    registry = tools_of(api.OrderViewSet, version="2")
    registry.rest(api.PathVersionView, version="v7")
    registry.rest(api.NamespaceVersionView, version="new")
    registry.rest(api.NamespaceVersionView, prefix="/api/v1/", name="old")
    client = client_named("ana", registry)
    assert {"id", "note"} < {*client.call("orders_retrieve", id=1).data}
    assert client.call("version_retrieve").data == {"version": "v7"}
    assert client.call("state_retrieve").data == {"version": "new"}
    assert client.call("old_retrieve").data == {"version": "old"}


def test_what_cannot_be_described_bars_nothing_else(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(schema: Any) -> bool:
        if schema.method == "GET":
            raise LookupError("not today")
        return False

    monkeypatch.setattr(AutoSchema, "is_excluded", fail)
    registry = tools_of(api.hello)
    assert [*registry.tools] == ["hello_create"]
    client = client_named("ben", registry)
    greeting = client.call("hello_create", **{"X-Reason": "a"}).data
    assert greeting == {"hello": "ben", "reason": "a"}
    barred, empty = registry.toolset_remarks
    assert "GET /api/hello/: is no tool: drf-spectacular cannot describe it" in barred
    assert "POST /api/hello/: nothing can be sent: add @extend_schema(" in empty


def test_check_says_nothing_of_texts_that_nobody_can_change(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = registry_of()
    monkeypatch.setattr(definitions, "mcp", registry)
    assert definitions.check_definitions(None) == []
    # The name of an action says little; its path tells it from others.
    text = registry.tools["orders_note"].definition.description
    assert text.startswith("Note (/api/orders/{id}/add-note/). ")


def test_a_view_that_requires_a_file_is_no_tool(api: Any) -> None:
    registry = tools_of(api.PaperView)
    assert registry.tools == {}
    [remark] = registry.toolset_remarks
    assert "POST /api/paper/: is no tool: it wants a file." in remark


def test_what_a_view_does_not_say_of_itself(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files, and what it reads by itself: no tool, or one that does what it says."""
    view = api.Photos
    registry = tools_of(view)
    client = client_named("ana", registry)
    new = {"title": "a", "place": "b"}
    assert client.call("photos_create", **new).data == {"got": new}
    assert client.try_call("photos_create", **new, photo="x").is_error
    assert client.call("photos_download").text == "<p>a</p>"
    left = "photo is left out: no file can be sent."
    read = "by itself: write extend_schema_view("
    assert {each.partition("): ")[2] for each in registry.toolset_remarks} == {
        "GET /api/photos/: it reads q, sort, year of request.GET "
        f'{read}list=extend_schema(parameters=[OpenApiParameter("q", str)]))(Photos).',
        "GET /api/photos/latest/: it reads state, year of request.GET "
        f'{read}latest=extend_schema(parameters=[OpenApiParameter("state", str)]))'
        "(Photos).",
        f"POST /api/photos/: {left}",
        f"PATCH /api/photos/{{id}}/: {left}",
        "POST /api/photos/upload/: is no tool: it wants a file.",
        "GET /api/photos/page/: is no tool: it answers with a page.",
        "POST /api/photos/rate/: nothing can be sent: add @extend_schema(request=…).",
        "POST /api/photos/rate/: it reads stars of request.POST "
        f"{read}rate=extend_schema(request=…))(Photos).",
    }
    # The line helps.
    monkeypatch.setattr(view.list, "kwargs", {}, raising=False)
    said: Any = [OpenApiParameter(each, str) for each in ("q", "sort", "year")]
    extend_schema_view(list=extend_schema(parameters=said))(view)
    again = tools_of(view, only=["list"])
    called = client_named("ana", again).call("photos_list", q="a", sort="b", year="1")
    assert called.data["words"] == "ab"
    assert again.toolset_remarks == {}


def test_more_parameters_than_a_tool_has_by_itself(api: Any) -> None:
    names = [f"p{n:02}" for n in range(60)]
    choices: list[tuple[dict[str, Any], list[str]]] = [
        ({}, names[:50]),
        ({"parameters": ["p55", "p01"]}, ["p01", "p55"]),
        ({"parameters": names[:55]}, names[:55]),
    ]
    for options, left in choices:
        registry = tools_of(api.WideView, **options)
        schema: Any = registry.tools["wide_list"].definition.input_schema
        assert [*schema["properties"]] == left
        assert len(registry.toolset_remarks) == (not options)
        client = client_named("ana", registry)
        assert client.call("wide_list", **{left[-1]: "x"}).data
    wrong = problem_of(tools_of(api.WideView, parameters=["q"]))
    assert "parameters names 'q'. There is p00, p01, " in wrong


def test_values_that_no_view_takes() -> None:
    client = client_named("ana")
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("orders_list", {"stat": "open"}, "Additional properties"),
        ("orders_list", {"state": None, "page": "x"}, "$.state"),
        ("orders_list", {"page": "x"}, "Invalid page."),
        ("orders_create", {**NEW, "number": [1]}, "number: Not a valid string."),
        ("orders_list", {"search": "\x00"}, "Null characters are not allowed."),
        ("orders_list", {"page": 10**400}, "Invalid page."),
        ("orders_retrieve", {"id": 10**400}, "No Order matches the given query."),
        ("orders_create", {**NEW, "number": "\x00"}, "number: Null characters are"),
        ("orders_create", {**NEW, "number": None}, "number"),
        ("orders_create", {**NEW, "created": "28.11.2026"}, "created"),
        ("orders_create", {"number": ["x"] * 20_000, "totals": 1}, "Additional prop"),
        ("orders_send", {"id": 1, "number": "x" * 2_000_000}, "The body would be"),
    ]
    for tool, arguments, sentence in wrong:
        result = client.try_call(tool, **arguments)
        assert result.is_error, tool
        assert sentence in result.text
    assert Order.objects.count() == 4


def test_no_key_leads_to_another_action() -> None:
    client = client_named("ana")
    assert client.call("stock_secret").data == {"secret": 1}
    for sku in ("secret", "%73ecret", "secret/", "x/../secret", "..", "..%2fsecret"):
        result = client.try_call("stock_retrieve", sku=sku)
        assert result.is_error, sku
        assert "secret" not in result.text


def test_lines_that_make_no_tools(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = type("Lost", (api.VersionView,), {})
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (lost, {}, "It is not in the URLconf, or has schema = None."),
        (Order, {}, "It must be a view of Django REST framework"),
        (api.VersionView, {}, "more than once: /api/twice/, /twice/."),
        (api.VersionView, {"prefix": "/x/"}, "not in the URLconf with the prefix /x/"),
        (api.OrderViewSet, {}, 'It has versions (1, 2): add version="…".'),
        (api.PathVersionView, {}, 'It has versions (…): add version="…".'),
        (api.NamespaceVersionView, {}, "once: /api/v1/state/, /api/v2/state/. Say"),
        (api.NamespaceVersionView, {"prefix": "/api/v3/"}, "with the prefix /api/v3/"),
        (api.HookView, {}, "PartnerKey may let in others than the site's users"),
        (api.StockViewSet, {"only": ["send"]}, "There is list, create, secret, "),
    ]
    for view, options, sentence in wrong:
        assert sentence in problem_of(tools_of(view, **options))
    registry = tools_of(api.HookView, stand_in=True)
    registry.rest(api.VersionView, prefix="/twice/")
    assert [*registry.tools] == ["hook_create", "twice_retrieve"]
    assert client_named("ben", registry).call("hook_create").data == {"user": "ben"}
    monkeypatch.delitem(sys.modules, "mcp_app.toolsets.rest", raising=False)
    monkeypatch.setitem(sys.modules, "drf_spectacular.drainage", None)
    lacking = problem_of(tools_of(api.StockViewSet))
    assert 'Install it: pip install "django-mcp-app[drf]"' in lacking


def test_the_other_extras_are_not_needed() -> None:
    run(
        "import sys\n"
        "sys.modules |= {'httpcore2': None, 'yaml': None}\n"
        "import django\n"
        "from django.conf import settings\n"
        f"settings.configure(ROOT_URLCONF={URLS!r}, SECRET_KEY='k' * 50,\n"
        "    INSTALLED_APPS=['django.contrib.auth', 'django.contrib.contenttypes',\n"
        "    'mcp_app', 'tests.drill'])\n"
        "django.setup()\n"
        "from mcp_app.catalog.registry import Registry\n"
        "from tests.toolsets import api\n"
        "registry = Registry()\n"
        "registry.rest(api.hello, stand_in=True)\n"
        "assert 'hello_create' in registry.tools, registry.toolset_problems\n"
    )
