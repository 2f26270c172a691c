"""Scopes with SQL or methods of the site's own show what a plain filter shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.db import connection, models
from django.db.models import BooleanField, Exists, Func, OuterRef, QuerySet
from django.db.models.expressions import RawSQL
from django.test.utils import isolate_apps

from mcp_app.catalog.registry import Registry
from mcp_app.kinds.query.changes import ChangeKind
from mcp_app.kinds.query.scoping import Scopes
from mcp_app.kinds.query.suggesting import _Looking, referenced_path
from tests.kinds.query import shop
from tests.kinds.query.test_changes import occurred, told
from tests.toolsets.people import client_of, person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]


class Refusing(QuerySet[Any]):
    """What counts otherwise, and lets nothing be asked."""

    def count(self) -> int:
        return -1

    def _refuse(self, *args: object, **options: object) -> Any:
        raise AssertionError("A method of the site is called.")

    aggregate = annotate = exists = filter = first = get = iterator = _refuse
    order_by = using = values = values_list = __iter__ = __getitem__ = _refuse


def _raw(sql: str) -> RawSQL:
    return RawSQL(sql, [], output_field=BooleanField())  # noqa: S611 - of the test


NAMED: Final = "shop_employee/* */ . tenant_id = 1"
POSTGRESQL: Final = (
    "may_see(shop_employee, 1)",
    "(shop_employee).tenant_id = 1",
    "(row_to_json(shop_employee)->>'tenant_id')::int = 1",
    "to_jsonb(shop_employee)->>'tenant_id' = '1'",
    r'U&"shop\005femployee".tenant_id = 1',
)
MAY_SEE: Final = (
    "CREATE FUNCTION may_see(shop_employee, int) RETURNS bool LANGUAGE sql"
    " AS 'SELECT $1.tenant_id = $2'"
)
WAYS: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    "extra": lambda rows, sql: rows.extra(  # noqa: S610 - of the test
        where=[sql, "name LIKE '%%o'"]
    ),
    "filter": lambda rows, sql: rows.filter(_raw(sql)).order_by("name").distinct(),
    "alias": lambda rows, sql: rows.alias(mcp_0=_raw(sql)).filter(mcp_0=True),
    "in": lambda rows, sql: rows.filter(
        tenant_id__in=[_raw("2 - shop_employee.tenant_id")]
    ),
    "template": lambda rows, sql: rows.exclude(
        ~models.Q(Func(template=sql, output_field=BooleanField()))
    ),
    "join": lambda rows, sql: rows.filter(_raw(sql), manager__name__gt=""),
    "exists": lambda rows, sql: rows.filter(
        Exists(rows.filter(_raw(sql), pk=OuterRef("pk")))
    ),
    "subquery": lambda rows, sql: rows.filter(pk__in=rows.filter(_raw(sql))),
    "table": lambda rows, sql: rows.filter(tenant_id=1).extra(
        tables=["auth_user"], where=["auth_user.id > 0"]
    ),
    "methods": lambda rows, sql: Refusing(rows.model, rows.filter(tenant_id=1).query),
    "reverse": lambda rows, sql: rows.filter(tenant_id=1).reverse(),
    "locked": lambda rows, sql: rows.filter(_raw(sql)).select_for_update(),
    "select": lambda rows, sql: (
        rows.filter(tenant_id=1)
        .annotate(pk=models.F("manager_id"))
        .extra(select={"id": "manager_id"})
    ),
}


@pytest.fixture
def employee() -> Iterator[Any]:
    """Yield a model with a hidden boss of somebody who is seen."""
    with isolate_apps("tests.drill"):

        class Employee(models.Model):  # noqa: DJ008
            name = models.CharField(max_length=20)
            tenant_id = models.IntegerField()
            manager = models.ForeignKey(
                "self", models.CASCADE, null=True, related_name="team"
            )

            class Meta:
                app_label = "drill"
                db_table = "shop_employee"

        with shop.tables_of(Employee):
            person("ada")
            make: Any = Employee._default_manager.create
            boss = make(name="Boss o", tenant_id=2)
            ann = make(name="Anno", tenant_id=1, manager=boss)
            make(name="Bobo", tenant_id=1, manager=ann)
            make(name="Hobo", tenant_id=2, manager=ann)
            yield Employee


def _answers(employee: Any, rows: Any) -> list[object]:
    """Return what look-ups, tools, events and suggestions tell of a scope's rows."""
    registry, model = Registry(), {"model": "drill.Employee"}
    opened, options = registry.open_models, {"rows": rows, "permission": ""}
    options |= {"fields": ["name", "manager", "team"], "events": ["changed"]}
    registry.open_model(employee, **options)
    registry.model_tools(employee)
    path = referenced_path("{{drill.Employee.name}}", opened)
    boss = {"path": "manager.name", "lookup": "iexact", "value": "boss o"}
    below = {"path": "team", "fields": ["name", "manager"]}
    whole = {**model, "fields": ["manager.manager", "manager.name"], "lists": [below]}
    event = {**model, "on": ["changed"], "fields": ["manager.name"]}
    keys = [*employee._base_manager.order_by("pk").values_list("pk", flat=True)]
    happened = [occurred(number, key) for number, key in enumerate(keys)]
    client = client_of(User.objects.get(), registry)
    return [
        shop.rows({**whole, "order": ["manager"]}, opened),
        shop.rows({**whole, "filters": [boss]}, opened),
        [each.data for each in told(ChangeKind(registry), event, happened)],
        _Looking([], [path], registry)._fitting_values(
            path, Scopes(shop.request(), "default"), "o"
        ),
        client.call("employee_list").data,
        client.call("employee_count", by="manager").data,
        [client.try_call("employee_get", key=key).raw for key in keys],
    ]


def test_a_scope_with_sql_shows_what_a_plain_one_shows(
    employee: Any, subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = employee.objects.all()
    plain = _answers(employee, lambda request: rows.filter(tenant_id=1))
    assert "Boss" not in repr(plain)
    assert "Boss" in repr(_answers(employee, "all"))
    cases = [(way, NAMED) for way in WAYS]
    if connection.vendor == "postgresql":
        connection.cursor().execute(MAY_SEE)
        cases += [("template", sql) for sql in POSTGRESQL]
    for way, sql in cases:
        with subtests.test(f"{way}: {sql}"):
            chosen = WAYS[way](rows, sql)
            assert _answers(employee, lambda request, chosen=chosen: chosen) == plain
    for way in ("extra", "methods"):
        chosen = WAYS[way](rows, NAMED)
        with subtests.test(f"the manager: {way}"), monkeypatch.context() as patch:
            get_queryset = chosen._chain
            patch.setattr(employee._default_manager, "get_queryset", get_queryset)
            assert _answers(employee, "all") == plain
