"""What is written into the outbox if rows of a model with events change."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from django.db import connection, connections, models, transaction
from django.db.models import F
from django.db.models.signals import post_delete, post_save, pre_save
from django.test.utils import CaptureQueriesContext, isolate_apps

from mcp_app.catalog.open_models import connect_row_events, open_model
from mcp_app.invalidation import row_events
from mcp_app.invalidation.changes import WatchedQuerySet
from mcp_app.models import Change, Occurrence
from tests.drill.models import Customer, Item, Order, Stock
from tests.invalidation.test_changes import elsewhere  # noqa: F401 - a fixture
from tests.kinds.query.shop import moment, order

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

SIGNALS: Final = (pre_save, post_save, post_delete)


class Urgent(Order):
    class Meta:
        proxy = True
        app_label = "drill"


@pytest.fixture
def opened(request: pytest.FixtureRequest) -> Iterator[None]:
    """Orders, with all their events and two watched columns."""
    model = open_model(
        getattr(request, "param", Order),
        fields=["number", "state", "customer_id"],
        rows="all",
        events=["created", "changed", "deleted"],
        watch=["state", "customer_id"],
    )
    connect_row_events({model.label: model}, lambda: "me")
    yield
    del row_events.connected[model.topic]
    for sender in (Order, Urgent):
        for signal in SIGNALS:
            signal.disconnect(sender=sender, dispatch_uid=model.topic)


pytestmark.append(pytest.mark.usefixtures("opened"))


def written() -> list[tuple[Any, ...]]:
    """Return what was written since the last time: key, what, and what changed."""
    rows = list(Occurrence.objects.order_by("pk"))
    Occurrence.objects.all().delete()
    assert {each.cause for each in rows} <= {"me"}
    data = [json.loads(each.data) for each in rows]
    return [
        ("many" if each.get("many") else each["pk"], each["on"], *each["changed"])
        for each in data
    ]


@pytest.fixture
def row() -> Order:
    made = order("1")
    assert written() == [(made.pk, "created")]
    return made


def orders() -> WatchedQuerySet[Any]:
    return WatchedQuerySet(Order)


@pytest.mark.parametrize("opened", [Order, Urgent], indirect=True)
def test_each_save_and_deletion_is_written_of_proxies_too(opened: None) -> None:
    for model in (Order, Urgent):
        made = model.objects.create(number="2", total=1, created=moment(0))
        key = made.pk
        made.save()
        model.objects.filter(pk=key).delete()
        happened = [(key, "created"), (key, "changed"), (key, "deleted")]
        assert written() == happened
    assert Change.objects.filter(kind="event").exists()


def test_what_of_a_save_has_changed(row: Order) -> None:
    ann = Customer.objects.create(name="ann", email="a@example.org")
    saves: list[tuple[dict[str, Any], str, str]] = [
        ({"state": "open"}, "", ""),
        ({"state": "sent"}, "", "state"),
        ({"state": "back", "customer": ann}, "", "state customer_id"),
        ({"state": "open"}, "note", ""),
        ({"customer": None}, "customer", "customer_id"),
        ({"customer_id": str(ann.pk)}, "customer_id", "customer_id"),
        ({"state": F("number")}, "", "state"),
    ]
    for values, column, changed in saves:
        for name, value in values.items():
            setattr(row, name, value)
        row.save(update_fields=[column] if column else None)
        assert written() == [(row.pk, "changed", *changed.split())], values
    # What was not read is not saved, and what is no new row was there before.
    Order.objects.defer("state").get().save()
    again = Order(pk=row.pk, number="1", total=1, created=moment(0), state="1")
    again.save()
    assert written() == [(row.pk, "changed"), (row.pk, "changed", "customer_id")]


def test_a_save_within_a_save(row: Order) -> None:
    def save_again(instance: Order, **_: Any) -> None:
        if not instance.note:
            instance.note = "again"
            instance.save()

    post_save.connect(save_again, sender=Order)
    try:
        # Ours comes after it if it is connected later.
        post_save.disconnect(sender=Order, dispatch_uid="+drill.Order")
        row_events.connected["+drill.Order"].connect()
        row.state = "sent"
        row.save()
    finally:
        post_save.disconnect(save_again, sender=Order)
    assert written() == [(row.pk, "changed"), (row.pk, "changed", "state")]


def test_what_writes_nothing(row: Order) -> None:
    row.save_base(raw=True)
    Item.objects.create(order=row, stock=Stock.objects.create(sku="a", price=1))
    with transaction.atomic():
        row.delete()
        transaction.set_rollback(True)
    assert orders().bulk_create([]) == []
    assert orders().filter(number="none").update(state="sent") == 0
    assert written() == []


def sent(rows: list[Order]) -> list[Order]:
    for each in rows:
        each.state = Order.State.SENT
    return rows


BULK: Final[list[tuple[Callable[[list[Order]], Any], str]]] = [
    (lambda rows: orders().update(state="sent"), "changed state"),
    (lambda rows: orders().order_by("pk").update(state="open"), "changed"),
    (lambda rows: orders().filter(state="open").update(state="x"), "changed state"),
    (lambda rows: orders().bulk_update(rows, ["note", "state"]), "changed"),
    (lambda rows: orders().bulk_update(sent(rows), ["state"]), "changed state"),
    (lambda rows: orders().delete(), "deleted"),
]


@pytest.mark.parametrize(("change", "what"), BULK)
def test_bulk(change: Callable[[list[Order]], Any], what: str) -> None:
    rows = [order("1"), order("2")]
    keys = [each.pk for each in rows]
    written()
    change(rows)
    assert sorted(written()) == [(key, *what.split()) for key in keys]


def test_rows_that_are_inserted_together(row: Order) -> None:
    def new(number: str) -> Order:
        return Order(number=number, total=1, created=moment(0))

    created = orders().bulk_create([new("2"), new("3")])
    told = connection.features.can_return_rows_from_bulk_insert
    keys = [each.pk if told else None for each in created]
    assert written() == (
        [(key, "created") for key in keys] if told else [("many", "created")]
    )
    orders().bulk_create([new("1"), new("4")], None, True)
    assert written() == [("many", "created")]
    columns = {"update_fields": ["state"], "update_conflicts": True}
    if connection.features.supports_update_conflicts_with_target:
        columns["unique_fields"] = ["number"]
    orders().bulk_create([new("1")], **columns)
    assert written() == [("many", "created"), ("many", "changed", "state")]


def test_ten_thousand_rows_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [Order(number=f"{n}", total=1, created=moment(0)) for n in range(1_001)]
    orders().bulk_create(rows)
    assert written() == [("many", "created")]
    with CaptureQueriesContext(connection) as statements:
        orders().update(state="sent")
    assert written() == [("many", "changed", "state")]
    assert len(statements) < 10
    rows = [*Order.objects.all()]
    orders().bulk_update(rows, ["note"], 500)
    assert written() == [("many", "changed")]
    orders().filter(pk__in=[each.pk for each in rows[:1_000]]).update(note="a")
    assert len(written()) == 1_000


def test_an_import_that_saves_each_row_is_told_in_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(row_events, "MAX_KEYS", 2)
    with transaction.atomic():
        first, second = order("1"), order("2")
        with transaction.atomic():
            order("3")
            transaction.set_rollback(True)
        for number in "456":
            order(number)
        first.save()
    happened = [(first.pk, "created"), (second.pk, "created")]
    more = ("many", "created", "state", "customer_id")
    assert written() == [*happened, more, (first.pk, "changed")]


class Watched(list[Any]):
    """Counts how often somebody looks at one of it."""

    looks = 0

    def __getitem__(self, at: Any) -> Any:
        self.looks += 1
        return super().__getitem__(at)

    def __iter__(self) -> Iterator[Any]:
        for each in super().__iter__():
            self.looks += 1
            yield each

    def __reversed__(self) -> Iterator[Any]:
        for each in super().__reversed__():
            self.looks += 1
            yield each


def test_a_save_does_not_look_at_all_that_a_commit_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with transaction.atomic():
        waiting = Watched(connection.run_on_commit)
        monkeypatch.setattr(connection, "run_on_commit", waiting)
        saved = order("1")
        before = waiting.looks
        for _row in range(100):
            transaction.on_commit(int)
            saved.save()
        assert waiting.looks - before < 1_000


@isolate_apps("tests.drill")
def test_a_row_of_a_subclass_is_one_of_the_model(
    elsewhere: str,  # noqa: F811
) -> None:
    class Animal(models.Model):  # noqa: DJ008
        paper = models.FileField(null=True)

        class Meta:
            app_label = "drill"

    class Dog(Animal):  # noqa: DJ008
        legs = models.IntegerField(default=4)

        class Meta:
            app_label = "drill"

    with connections[elsewhere].schema_editor() as editor:
        editor.create_model(Animal)
        editor.create_model(Dog)
    opened = open_model(
        Animal,
        fields=["paper"],
        rows="all",
        events=["created", "changed", "deleted"],
        watch=["paper"],
    )
    connect_row_events({opened.label: opened}, lambda: "me")
    dog = Dog()
    dog.save(using=elsewhere)
    dog.save()
    dog.paper = "a.txt"
    dog.save()
    key = dog.pk
    WatchedQuerySet(Dog, using=elsewhere).update(legs=3)
    dog.delete(keep_parents=True)
    happened = ["created", "changed", "changed paper", "changed"]
    assert written() == [(key, *each.split()) for each in happened]
    Dog().save(using=elsewhere)
    Dog._default_manager.using(elsewhere).get().delete()
    del row_events.connected[opened.topic]
    assert written() == [(key + 1, "created"), (key + 1, "deleted")]


def test_another_database_is_written_at_its_commit(
    elsewhere: str,  # noqa: F811
) -> None:
    with connections[elsewhere].schema_editor() as editor:
        for model in (Customer, Order):
            editor.create_model(model)

    def make(number: str) -> Any:
        row = Order(number=number, total=1, created=moment(0))
        row.save(using=elsewhere)
        return row.pk

    with transaction.atomic(using=elsewhere):
        first = make("1")
        with transaction.atomic(using=elsewhere):
            make("2")
            transaction.set_rollback(True, using=elsewhere)
        with CaptureQueriesContext(connection) as statements:
            third, fourth = make("3"), make("4")
        assert (len(statements), written()) == (0, [])
    assert written() == [(key, "created") for key in (first, third, fourth)]
    with transaction.atomic(using=elsewhere):
        make("5")
        transaction.set_rollback(True, using=elsewhere)
    assert written() == []
    WatchedQuerySet(Order, using=elsewhere).filter(number="1").update(state="sent")
    assert written() == [(first, "changed", "state")]
