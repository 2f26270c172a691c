"""Scopes with SQL or methods of the site's own show what a plain filter shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.db import connection, models
from django.db.models import (
    BooleanField,
    Count,
    Exists,
    Func,
    OuterRef,
    QuerySet,
    Value,
)
from django.db.models.expressions import RawSQL
from django.test.utils import isolate_apps

from mcp_app.catalog.registry import Registry
from mcp_app.kinds.query.changes import ChangeKind
from mcp_app.kinds.query.scoping import Scopes
from mcp_app.kinds.query.suggesting import _Looking, referenced_path
from tests.kinds.query import shop
from tests.kinds.query.drawn_models import tables_of
from tests.kinds.query.test_changes import occurred, told
from tests.toolsets.people import client_of, person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]


def _raw(sql: str, **options: Any) -> RawSQL:
    return RawSQL(sql, [], **options)  # noqa: S611 - of the test


def _is_true(sql: str) -> RawSQL:
    return _raw(sql, output_field=BooleanField())


NAMED: Final = "shop_employee/* */ . tenant_id = 1"
SCOPES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "extra": lambda rows: rows.extra(
        where=["shop_employee.tenant_id = %s"], params=[1]
    ),
    "percent": lambda rows: rows.extra(
        where=["tenant_id %% 2 = %s AND name LIKE '%%'"], params=[1]
    ),
    "filter": lambda rows: rows.filter(_is_true(NAMED)),
    "not": lambda rows: rows.exclude(~models.Q(_is_true(NAMED))),
    "value": lambda rows: rows.filter(tenant_id=_raw("2 - shop_employee.tenant_id")),
    "values": lambda rows: rows.filter(
        tenant_id__in=[_raw("2 - shop_employee.tenant_id")]
    ),
    "alias": lambda rows: rows.alias(seen=_is_true(NAMED)).filter(seen=True),
    "annotation": lambda rows: rows.annotate(mcp_0=_is_true(NAMED)).filter(mcp_0=True),
    "aggregate": lambda rows: rows.annotate(mcp_1=Count("team")).filter(tenant_id=1),
    "function": lambda rows: rows.filter(
        Func(template=NAMED, output_field=BooleanField())
    ),
    "join": lambda rows: rows.filter(_is_true(NAMED), manager__name__gt=""),
    "exists": lambda rows: rows.filter(
        Exists(rows.filter(_is_true(NAMED), pk=OuterRef("pk")))
    ),
    "subquery": lambda rows: rows.filter(
        pk__in=rows.filter(_is_true(NAMED)).values("pk")
    ),
    "table": lambda rows: rows.filter(tenant_id=1).extra(
        tables=["django_content_type"],
        where=["django_content_type.id = (SELECT min(id) FROM django_content_type)"],
    ),
    "distinct": lambda rows: rows.filter(_is_true(NAMED)).distinct().order_by("name"),
    "methods": lambda rows: Refusing(rows.model, rows.filter(tenant_id=1).query),
}
POSTGRESQL: Final[Mapping[str, Callable[[Any], Any]]] = {
    "row": lambda rows: rows.extra(where=["may_see(shop_employee, %s)"], params=[1]),
    "member": lambda rows: rows.alias(
        t=_raw("(shop_employee).tenant_id", output_field=models.IntegerField())
    ).filter(t=1),
    "json": lambda rows: rows.filter(
        _is_true("(row_to_json(shop_employee)->>'tenant_id')::int = 1")
    ),
    "template": lambda rows: rows.alias(
        t=Func(
            template="to_jsonb(shop_employee)->>'tenant_id'",
            output_field=models.TextField(),
        )
    ).filter(t=Value("1")),
    "unicode": lambda rows: rows.filter(
        _is_true(r'U&"shop\005femployee".tenant_id = 1')
    ),
    "first of each": lambda rows: (
        rows.filter(_is_true(NAMED)).order_by("name", "-pk").distinct("name")
    ),
}
MANAGERS: Final = ("extra", "methods")
"""Those that are a model's manager, too."""
MAY_SEE: Final = (
    "CREATE FUNCTION may_see(shop_employee, int) RETURNS bool LANGUAGE sql"
    " AS 'SELECT $1.tenant_id = $2'"
)


class Refusing(QuerySet[Any]):
    """What counts otherwise, and lets nothing be asked."""

    def count(self) -> int:
        return -1

    def _refuse(self, *args: object, **options: object) -> Any:
        raise AssertionError("A method of the site is called.")

    aggregate = annotate = exists = filter = first = get = iterator = _refuse
    order_by = using = values = values_list = __iter__ = __getitem__ = _refuse


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

        with tables_of(Employee):
            person("ada")
            make: Any = Employee._default_manager.create
            boss = make(name="Boss", tenant_id=2)
            ann = make(name="Anno", tenant_id=1, manager=boss)
            make(name="Bobo", tenant_id=1, manager=ann)
            make(name="Hobo", tenant_id=2, manager=ann)
            yield Employee


def _answers(employee: Any, rows: Any) -> list[object]:
    """Return what look-ups, tools, events and suggestions tell of a scope's rows."""
    registry = Registry()
    fields = ["name", "manager", "team"]
    options: Any = {"rows": rows, "permission": "", "events": ["changed"]}
    registry.open_model(employee, fields=fields, **options)
    registry.model_tools(employee)
    opened = registry.open_models
    path = referenced_path("{{drill.Employee.name}}", opened)
    scopes = Scopes(shop.request(), "default")
    boss = {"path": "manager.name", "lookup": "iexact", "value": "boss"}
    whole = {
        "model": "drill.Employee",
        "fields": ["name", "manager.manager.name", "manager.name"],
        "lists": [{"path": "team", "fields": ["name", "manager"]}],
        "order": ["manager"],
    }
    event = {"model": "drill.Employee", "on": ["changed"], "fields": ["manager.name"]}
    keys = [*employee._base_manager.order_by("pk").values_list("pk", flat=True)]
    happened = [occurred(number, key) for number, key in enumerate(keys)]
    client = client_of(User.objects.get(), registry)
    return [
        shop.rows(whole, opened),
        [
            shop.rows({**whole, "filters": [{**boss, "exclude": e}]}, opened)
            for e in (0, 1)
        ],
        [
            (each.number, each.data)
            for each in told(ChangeKind(registry), event, happened)
        ],
        _Looking([], [path], registry)._found(path, scopes, "o"),
        client.call("employee_list").data,
        client.call("employee_list", manager_key=keys[0]).data,
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
    scopes = {**SCOPES}
    if connection.vendor == "postgresql":
        connection.cursor().execute(MAY_SEE)
        scopes |= POSTGRESQL
    for name, scope in scopes.items():
        answer = partial(scope, rows)
        with subtests.test(name), monkeypatch.context() as patch:
            if name in MANAGERS:
                patch.setattr(employee._default_manager, "get_queryset", answer)
                assert _answers(employee, "all") == plain
            assert _answers(employee, lambda request, do=answer: do()) == plain
