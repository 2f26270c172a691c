from __future__ import annotations

from typing import Annotated, Any

import pytest
from django.conf import LazySettings
from django.core import checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import router
from django.db.models import Model
from django.test import override_settings
from django.utils import translation
from django.utils.translation import gettext_lazy
from pydantic import Field

from mcp_app import Approval
from mcp_app.catalog.registry import Registry
from mcp_app.checks import TAG, definitions
from mcp_app.checks.definitions import (
    PER_RULE,
    check_access,
    check_approvals,
    check_definitions,
    check_open_models,
    check_permissions,
    check_public_servers,
    check_rows,
    check_rules,
    check_tasks,
)
from mcp_app.interface.principal import AccessRequest
from mcp_app.models import Server, Tool
from tests.drill.models import Country, Customer, Item, Ledger, Order, Stock
from tests.models.missing import ELSEWHERE, missing
from tests.published import published


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """What code declares, in the place of the drill's."""
    registry = Registry()
    monkeypatch.setattr(definitions, "mcp", registry)
    return registry


def test_what_lint_says_of_code(registry: Registry) -> None:
    @registry.tool(description="Finds orders.", title="Find orders", open_world=False)
    def find(customer: str) -> str:
        return customer

    changes, parameter = check_definitions(None)
    assert changes.id == "mcp_app.I110"
    assert changes.level == checks.INFO
    assert changes.msg == (
        f"The tool “find” ({__name__}.{find.__qualname__}), read_only: Say whether "
        "this tool changes anything."
    )
    assert changes.hint == "Set read_only=True, or read_only=False and destructive=…."
    assert parameter.id == "mcp_app.I120"
    assert parameter.hint


def test_well_declared_code_is_left_alone(registry: Registry) -> None:
    @registry.tool(title="Find orders", read_only=True, open_world=False)
    def find() -> str:
        """Finds orders."""
        return ""

    assert check_definitions(None) == []


def test_many_findings_are_counted(registry: Registry) -> None:
    for number in range(PER_RULE + 3):
        declare = registry.tool(
            f"tool_{number}", title="A", read_only=True, open_world=False
        )
        declare(lambda: "")
        if number < PER_RULE:
            # As many as are shown are not counted.
            assert "more of this kind" not in str(check_definitions(None))
    found = check_definitions(None)
    assert [each.id for each in found] == ["mcp_app.I106"] * PER_RULE
    assert [each for each in found if "more of this kind" in each.msg] == [found[-1]]
    assert found[-1].msg.endswith(" And 3 more of this kind.")


@pytest.mark.parametrize("given", [{"LIMITS": "of"}, {"LIMITS": {"SCHEMA": "big"}}])
def test_with_wrong_settings_nothing_is_linted(
    given: dict[str, Any], registry: Registry
) -> None:
    @registry.tool
    def undescribed() -> str:
        return ""

    assert check_definitions(None)
    with override_settings(MCP=given):
        assert check_definitions(None) == []


def test_what_hides_in_code_is_a_warning(registry: Registry) -> None:
    @registry.tool(title="Look", read_only=True, open_world=False)
    def look(
        place: Annotated[str, Field(description=gettext_lazy("Where\u200b."))],
    ) -> str:
        """Looks at a place."""
        return place

    [found] = check_definitions(None)
    assert (found.id, found.level) == ("mcp_app.W105", checks.WARNING)
    assert "$.properties.place.description: There is a hidden character" in found.msg
    assert found.hint == "Write the text again, without the character."


def test_checks_speak_english(registry: Registry) -> None:
    @registry.tool(
        "a", title="A", description="b " * 600, read_only=True, open_world=True
    )
    def long() -> str:
        return ""

    with translation.override("de"):
        [found] = check_definitions(None)
    assert "has 1200 characters" in found.msg


@pytest.mark.usefixtures("registry")
def test_without_its_option_no_statement_is_made() -> None:
    # The test has no access to a database: a statement would raise.
    assert check_rows(None) == []
    assert check_rows(None, databases=[]) == []
    assert check_rows(None, databases=["other"]) == []


@pytest.mark.django_db
@pytest.mark.usefixtures("registry")
def test_what_lint_says_of_rows() -> None:
    row = published(
        Tool(name="a", title="A", description="Tells it.", open_world=False)
    )
    Tool.objects.create(name="not_published")
    Server.objects.update(instructions="word " * 501)
    published(Server.objects.get())
    instructions, kind, changes = sorted(
        check_rows(None, databases=["default"]), key=lambda each: each.id or ""
    )
    assert (kind.id, kind.level) == ("mcp_app.W101", checks.WARNING)
    assert kind.msg.startswith(f"The tool “a” (tool {row.pk}), config: ")
    assert (changes.id, changes.hint) == ("mcp_app.W110", None)
    assert (instructions.id, instructions.level) == ("mcp_app.I130", checks.INFO)
    assert instructions.msg.startswith("The server “default” (server default), instr")


@pytest.mark.django_db
@pytest.mark.usefixtures("registry")
def test_the_command_looks_at_rows(capsys: pytest.CaptureFixture[str]) -> None:
    published(Tool(name="weather"))
    call_command("check")
    assert "weather" not in capsys.readouterr().err
    call_command("check", tags=[TAG], databases=["default"])
    assert "(mcp_app.W106) The tool “weather” (tool " in capsys.readouterr().err
    with pytest.raises(SystemCheckError, match=r"W106"):
        call_command("check", tags=[TAG], databases=["default"], fail_level="WARNING")


@pytest.mark.django_db
@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("model", "found"),
    [
        # As before the first `migrate`: nothing is there to be told of.
        (Server, []),
        # As before the `migrate` of an update.
        (Tool, ["mcp_app.I002"]),
    ],
)
def test_tables_that_are_missing(model: type[Model], found: list[str]) -> None:
    with missing(model):
        messages = check_rows(None, databases=["default"])
    assert [each.id for each in messages] == found
    assert all(ELSEWHERE in each.msg for each in messages)
    # The transaction around it still works.
    assert Tool.objects.count() == 0


# -- rights ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("permission", "found"),
    [
        ("", []),
        ("mcp_app.view_tool", []),
        ("mcp_app.view_nothing", ["mcp_app.W003"]),
        ("shop.view_order", ["mcp_app.W003"]),
    ],
)
def test_permissions_that_code_asks_for(
    permission: str, found: list[str], registry: Registry
) -> None:
    @registry.tool(permission=permission)
    def guarded() -> str:
        return "done"

    warnings = check_permissions(None)
    assert [each.id for each in warnings] == found
    assert all("'guarded'" in each.msg and permission in each.msg for each in warnings)


def test_the_permission_of_an_approval(registry: Registry) -> None:
    approval = Approval(by="other", permission="shop.view_order")
    registry.tool("pay", approval=approval)(lambda: None)
    (warning,) = check_permissions(None)
    assert "'approval of pay'" in str(warning.msg)


def test_what_code_opens(registry: Registry) -> None:
    registry.open_model(Ledger, fields=["key"], rows="all")
    assert check_permissions(None) == check_open_models(None) == []
    registry.open_model(
        Stock,
        fields=["sku"],
        filters=["price"],
        rows="all",
        permission="drill.see_stock",
        permissions={"price": "drill.see_price"},
    )
    assert [each.msg for each in check_permissions(None)] == [
        f"'drill.Stock' requires the permission 'drill.see_{name}', which no model has,"
        " so only superusers will see it."
        for name in ("stock", "price")
    ]
    [warning] = check_open_models(None)
    assert warning.id == "mcp_app.W023"
    assert "'price' is in filters and not in fields" in warning.msg


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({Item: ["amount", "order"], Order: ["number"]}, "Item order"),
        ({Item: ["amount"], Order: ["number", "items"]}, "Item order"),
        ({Item: ["amount"], Country: ["name"]}, "Item order__customer__country"),
        ({Customer: ["name", "orders"], Order: ["number", "customer"]}, ""),
        ({Stock: ["sku", "items"], Item: ["amount", "stock"]}, ""),
    ],
)
def test_rows_of_everybody_beside_a_limited_model(
    registry: Registry, fields: dict[Any, list[str]], line: str
) -> None:
    def rows_of(request: AccessRequest) -> Any:
        return Order.objects.none()

    *_, limited = fields
    for model, names in fields.items():
        rows: Any = rows_of if model is limited else "all"
        registry.open_model(model, fields=names, rows=rows, permission="")
    warnings = check_open_models(None)
    assert [each.id for each in warnings] == (["mcp_app.W025"] if line else [])
    for each in warnings:
        name, lookup = line.split()
        rows = f"{name}.objects.filter({lookup}__in=rows_of(request))"
        assert "gets the rows of everybody" in each.msg
        assert rows in (each.hint or "")


def test_events_of_another_database(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.open_model(Order, fields=["number"], rows="all", events=["changed"])
    registry.open_model(Item, fields=["amount"], rows="all")
    assert check_open_models(None) == []
    elsewhere = type("Router", (), {"db_for_write": _db_for_write})
    monkeypatch.setattr(router, "routers", [elsewhere()])
    (warning,) = check_open_models(None)
    assert warning.id == "mcp_app.W032"
    assert warning.msg.startswith("drill.Order is opened with events")


def _db_for_write(self: object, model: Any, **_: Any) -> str | None:
    return "elsewhere" if model._meta.app_label == "drill" else None


def test_rules_that_let_nobody_in(registry: Registry, settings: LazySettings) -> None:
    registry.rule("known")(lambda asked: True)
    registry.tool("fine", rule="known")(lambda: "done")
    assert check_rules(None) == []
    registry.tool("guarded", rule="weekdays")(lambda: "done")
    registry.resource(
        "ledger://{key}", model=Ledger, object_permission="drill.view_ledger"
    )(lambda key: key)
    unknown, objects = check_rules(None)
    assert (unknown.id, objects.id) == ("mcp_app.W020", "mcp_app.W021")
    assert "'guarded' requires the rule 'weekdays'" in unknown.msg
    settings.AUTHENTICATION_BACKENDS = ["tests.auth.backends.ByWorker"]
    assert check_rules(None) == [unknown]


def test_tasks_that_a_deploy_ends_or_that_hold_a_transaction(
    registry: Registry,
) -> None:
    @registry.tool(task="optional", idempotent=True, atomic=True)
    def again() -> str:
        return ""

    @registry.tool(task="optional")
    def once() -> str:
        return ""

    @registry.tool(task="optional", timeout=20)
    def soon() -> str:
        return ""

    long_transaction, ended = check_tasks(None)
    assert (long_transaction.id, ended.id) == ("mcp_app.W031", "mcp_app.W030")
    assert ended.msg.startswith("A deploy ends the tasks of 'once'")
    with override_settings(MCP={"TASKS": "worker"}):
        assert [each.id for each in check_tasks(None)] == ["mcp_app.W031"]


def test_approvals_whose_answers_cannot_be_fetched(registry: Registry) -> None:
    off = {"DISABLED_TOOLS": ["get_task_result"]}
    with override_settings(MCP=off):
        assert check_approvals(None) == []
        registry.tool("pay", approval="other")(lambda: "")
        [warning] = check_approvals(None)
    assert (warning.id, warning.msg[:4]) == ("mcp_app.W035", "pay ")
    assert check_approvals(None) == []


def test_a_server_that_names_what_the_settings_lack() -> None:
    # The test has no access to a database: a statement would raise.
    assert check_access(None) == []
    assert check_access(None, databases=["other"]) == []


@pytest.mark.django_db
def test_the_servers_that_are_closed() -> None:
    assert check_access(None, databases=["default"]) == []
    Server.objects.create(slug="open", access="public")
    Server.objects.create(slug="shop", access="partners token keys")
    [found] = check_access(None, databases=["default"])
    assert (found.id, found.level) == ("mcp_app.W019", checks.WARNING)
    assert found.msg == (
        'The server “shop” lets nobody in, because MCP["AUTHENTICATION"] has no'
        " “partners”, “keys”."
    )
    names = dict.fromkeys(("partners", "keys", "token"), "builtins.len")
    with override_settings(MCP={"AUTHENTICATION": names}):
        assert check_access(None, databases=["default"]) == []
    with override_settings(MCP=[]):
        assert check_access(None, databases=["default"]) == []


@pytest.mark.django_db
def test_a_server_where_something_else_is() -> None:
    Server.objects.create(slug="metrics", access="public")
    Server.objects.create(slug="server-card", access="public")
    found = check_access(None, databases=["default"])
    assert [each.id for each in found] == ["mcp_app.E029", "mcp_app.E030"]


@pytest.mark.django_db
def test_a_server_that_cannot_search(monkeypatch: pytest.MonkeyPatch) -> None:
    Server.objects.create(slug="shop", listing="search")
    Server.objects.create(slug="other")
    assert check_access(None, databases=["default"]) == []
    monkeypatch.setattr(definitions, "has_full_text", lambda: False)
    [found] = check_access(None, databases=["default"])
    assert (found.id, found.level) == ("mcp_app.E013", checks.ERROR)
    assert found.msg.startswith("Clients of the server “shop” search for tools")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("access", "trusted", "ids"),
    [
        ("public", 0, ["mcp_app.W028"]),
        ("public", 1, []),
        ("public", ["127.0.0.1"], []),
        ("token", 0, []),
    ],
)
def test_a_server_for_everybody_whose_callers_may_have_no_address(
    settings: Any, access: str, trusted: object, ids: list[str]
) -> None:
    Server.objects.all().delete()
    Server.objects.create(slug="open", access=access)
    settings.MCP = {**settings.MCP, "TRUSTED_PROXIES": trusted}
    assert [each.id for each in check_public_servers(None, ["default"])] == ids
    assert check_public_servers(None, ["other"]) == []
