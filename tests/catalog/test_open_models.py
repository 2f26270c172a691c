from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.fields import GenericRelation
from django.contrib.sessions.models import Session
from django.db import models
from django.db.models.signals import post_delete, post_save, pre_save
from django.test.utils import isolate_apps

from mcp_app.catalog.lint import registry_problems
from mcp_app.catalog.open_models import (
    FieldKind,
    Link,
    OpenModel,
    connect_row_events,
    exposure_advice,
    open_model,
)
from mcp_app.catalog.registry import Registry
from mcp_app.interface.errors import RegistrationError
from mcp_app.interface.principal import AccessRequest
from mcp_app.invalidation.row_events import connected
from mcp_app.models import Tool
from tests.drill.models import Country, Customer, Invoice, Item, Order


def opened(model: object = Order, *fields: str, **options: Any) -> OpenModel:
    return open_model(model, fields=[*fields] or ["number"], rows="all", **options)


def orders_of(request: AccessRequest) -> Any:
    return Order.objects.all()


def test_what_a_model_offers() -> None:
    model = opened(Order, "number", "items", filters=["state"], title="All orders")
    assert [*model.fields] == ["number", "items"]
    assert [*model.filters] == ["state"]
    assert [*model.all_fields] == ["state", "number", "items"]
    assert (model.label, model.title) == ("drill.Order", "All orders")
    assert model.permission == "drill.view_order"
    assert (model.per_caller, model.rows_name) == (False, "")

    whose = open_model(Order, fields=["number"], rows=orders_of, permission="")
    assert (whose.permission, whose.title) == ("", "Orders")
    assert whose.per_caller
    assert whose.rows_name == f"{__name__}.orders_of"


def test_what_stands_for_a_row() -> None:
    assert opened(Order, "note", "id", "number").text == "number"
    # A long text, or one that may be empty, does so only if code says it.
    assert opened(Order, "note").text == ""
    assert opened(Order, "note", text="note").text == "note"


@pytest.mark.parametrize(
    ("model", "names", "kind"),
    [
        (Order, "number note", FieldKind.TEXT),
        (Order, "state", FieldKind.CHOICE),
        (Order, "total", FieldKind.DECIMAL),
        (Order, "weight", FieldKind.FLOAT),
        (Order, "created", FieldKind.DATETIME),
        (Order, "due", FieldKind.DATE),
        (Order, "margin", FieldKind.NUMBER),
        (Order, "hidden", FieldKind.YES_NO),
        (Order, "id customer_id", FieldKind.KEY),
        (Invoice, "key", FieldKind.KEY),
        (Order, "customer invoice", FieldKind.TO_ONE),
        (Invoice, "order", FieldKind.TO_ONE),
        (Order, "items suppliers", FieldKind.TO_MANY),
        (Country, "supplies customers", FieldKind.TO_MANY),
    ],
)
def test_kinds_of_fields(model: Any, names: str, kind: FieldKind) -> None:
    for field in opened(model, *names.split()).fields.values():
        assert field.kind is kind
        assert field.is_relation is (kind in (FieldKind.TO_ONE, FieldKind.TO_MANY))


@pytest.mark.parametrize(
    ("model", "name", "link", "key"),
    [
        (Order, "customer", ("customer_id", "id"), "id"),
        (Customer, "country", ("country_id", "code"), "code"),
        (Order, "invoice", ("id", "order_id"), "key"),
        (Country, "customers", ("code", "country_id"), "id"),
        (Order, "suppliers", ("id", "order_id"), "order_id"),
        (Country, "supplies", ("id", "country_id"), "country_id"),
    ],
)
def test_how_relations_are_joined(
    model: Any, name: str, link: tuple[str, str], key: str
) -> None:
    field = opened(model, name).fields[name]
    assert field.join_columns == Link(*link)
    if field.kind is FieldKind.TO_ONE:
        assert field.key_column == key


def test_the_table_of_a_many_to_many_relation() -> None:
    for model, name, forward in (
        (Order, "suppliers", "country"),
        (Country, "supplies", "order"),
    ):
        between = opened(model, name).fields[name].through_table
        assert between is not None
        assert between.model is Order.suppliers.through
        assert between.forward.name == forward


def test_a_key_is_shown_as_the_column_that_it_points_to() -> None:
    assert opened(Customer, "country").fields["country"].value_column.name == "code"
    assert opened(Order, "invoice").fields["invoice"].value_column.name == "key"


def test_what_may_be_empty() -> None:
    names = ("number", "note", "due", "total", "customer", "invoice")
    fields = opened(Order, *names).fields.items()
    empty = [name for name, each in fields if each.may_be_empty]
    assert empty == ["note", "due", "customer", "invoice"]
    assert [name for name, each in fields if each.nullable] == empty[1:]


class _Owner:
    @property
    def owner(self) -> str:
        return ""


class _Visible(models.Manager[Any]):
    def get_queryset(self) -> Any:
        return super().get_queryset().filter(hidden=False)


class Hidden(Order):
    objects = _Visible()

    class Meta:
        proxy = True
        app_label = "drill"


_SUPPLIED: dict[str, Any] = {"events": ["changed"], "fields": ["suppliers"]}
REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    ("Order", {}, "open_model got 'Order'. It must be a Django model"),
    (_Owner, {}, "It must be a Django model"),
    (Order, {"rows": None}, 'drill.Order: rows is None. It must be "all", or a'),
    (Order, {"fields": "__all__"}, "fields is '__all__'. It must be a list of names"),
    (Order, {"fields": []}, r"fields is \[\]. It must be a list of names"),
    (Order, {"filters": {"a"}}, r"filters is {'a'}. It must be a list of names"),
    (Order, {"fields": ["numbr"]}, "'numbr', which does not exist. Did you mean 'num"),
    (Order, {"fields": ["pk"]}, "'pk', which is no column and no relation"),
    (Order, {"fields": [3]}, "fields names 3, which does not exist."),
    (Order, {"permissions": {"margin": "a.b"}}, "permissions names 'margin', which is"),
    (User, {"fields": ["password"]}, "passwords cannot be opened"),
    (Tool, {"fields": ["id"]}, "mcp_app.Tool cannot be opened: its rows let others in"),
    (Session, {"fields": ["session_key"]}, "its rows let others in"),
    (Order, {"events": "changed"}, "The option events is 'changed': write a list"),
    (Order, {"events": ["sold"]}, r"events is \['sold'\]: it must be 'created', 'cha"),
    (Order, {"events": ["deleted"], "rows": orders_of}, "rows is a function: of a row"),
    (Hidden, {"events": ["deleted"]}, "its manager chooses rows: of a row that is gon"),
    (Order, {"events": ["changed"], "watch": ["total"]}, "watch has 'total', which is"),
    (Order, {**_SUPPLIED, "watch": ["suppliers"]}, "watch has 'suppliers', which is n"),
    (Order, {"watch": ["number"]}, r"watch is \('number',\), but events has no \"cha"),
]


@pytest.mark.parametrize(("model", "changes", "sentence"), REFUSED)
def test_what_cannot_be_opened(
    model: Any, changes: dict[str, Any], sentence: str
) -> None:
    options: dict[str, Any] = {"fields": ["number"], "rows": "all", **changes}
    with pytest.raises(RegistrationError, match=sentence):
        open_model(model, **options)


@isolate_apps("tests.drill")
def test_models_and_fields_of_other_sorts() -> None:
    class Abstract(models.Model):
        class Meta:
            abstract = True

    class Page(models.Model):  # noqa: DJ008
        data = models.BinaryField()
        json = models.JSONField()
        took = models.DurationField()
        address = models.GenericIPAddressField()
        slug = models.SlugField()
        notes = GenericRelation("Membership")

        class Meta:
            app_label = "drill"

    class Membership(models.Model):  # noqa: DJ008
        page = models.ForeignKey(Page, models.CASCADE)
        group = models.ForeignKey("Team", models.CASCADE)

        class Meta:
            app_label = "drill"

    class Team(models.Model):  # noqa: DJ008
        pages = models.ManyToManyField(Page, through=Membership)

        class Meta:
            app_label = "drill"

    with pytest.raises(RegistrationError, match="is abstract, so it has no rows"):
        opened(Abstract, "id")
    with pytest.raises(RegistrationError, match="a BinaryField has no form in JSON"):
        opened(Page, "data")
    with pytest.raises(RegistrationError, match=r"open its model drill\.Membership"):
        opened(Team, "pages")
    with pytest.raises(RegistrationError, match="a generic relation cannot be opened"):
        opened(Page, "notes")
    with pytest.raises(RegistrationError, match="nobody can ask by a JSONField"):
        opened(Page, "json", filters=["json"])
    fields = opened(Page, "json", "took", "address", "slug").fields.values()
    kinds = [FieldKind.OTHER, FieldKind.DURATION, FieldKind.KEY, FieldKind.TEXT]
    assert [each.kind for each in fields] == kinds


def test_a_relation_needs_its_target() -> None:
    registry = Registry()
    registry.open_model(Order, fields=["number", "customer"], rows="all")
    [problem] = registry_problems(registry)
    assert problem.endswith(
        "drill.Order opens 'customer', which leads to drill.Customer, but no code opens"
        " drill.Customer. Open it, too, or leave 'customer' out."
    )
    assert __file__ in problem
    # Code that could not open it has a sentence of its own.
    with pytest.raises(RegistrationError):
        registry.open_model(Customer, fields=["nam"], rows="all")
    assert registry_problems(registry) == []


def test_a_model_is_opened_once() -> None:
    registry = Registry()
    for _time in range(2):
        # As modules that are loaded again do.
        registry.open_model(Item, fields=["amount"], rows="all")
    with pytest.raises(RegistrationError, match=r"drill.Item is already opened at .+:"):
        registry.open_model(Item, fields=["amount"], rows="all")


def test_advice() -> None:
    both = [
        opened(User, "username", "last_login", filters=["username", "email"]),
        opened(Permission, "codename"),
        opened(Group, "name"),
    ]
    assert [*exposure_advice({each.label: each for each in both})] == [
        "auth.User: 'email' is in filters and not in fields. Nobody sees it, but who"
        " asks often enough can guess its values."
    ]


@isolate_apps("tests.drill")
def test_advice_about_secrets() -> None:
    class Token(models.Model):  # noqa: DJ008
        key = models.CharField(max_length=20, primary_key=True)

        class Meta:
            app_label = "drill"

    class Account(models.Model):  # noqa: DJ008
        account_key = models.CharField(max_length=20, primary_key=True)
        badge_key = models.CharField(max_length=20)
        max_tokens = models.IntegerField()
        number_key = models.IntegerField()
        has_password = models.BooleanField()
        name = models.CharField(max_length=20)
        owner = models.ForeignKey(Token, models.CASCADE)

        class Meta:
            app_label = "drill"

    account = opened(Account, *(each.name for each in Account._meta.concrete_fields))
    assert [*exposure_advice({account.label: account})] == [
        f"drill.Account: {name!r} sounds like a secret, and it is opened."
        for name in ("badge_key", "owner")
    ]
    # What stands for a row, where a relation leads to it, is none.
    assert account.text == "name"
    with pytest.raises(RegistrationError, match=r"and no secret, such as"):
        opened(Account, "badge_key", "name", text="badge_key")
    with pytest.raises(RegistrationError, match=r"the key of its rows, key, is a sec"):
        opened(Token, "key")


def test_a_model_without_events_costs_nothing() -> None:
    signals = (pre_save, post_save, post_delete)
    before = [len(each.receivers) for each in signals]
    connect_row_events({"drill.Order": opened()}, str)
    assert [len(each.receivers) for each in signals] == before
    assert connected == {}
