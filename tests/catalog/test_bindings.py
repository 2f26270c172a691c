"""Resources that show instances of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db.models.signals import post_delete, post_save

from mcp_app import RegistrationError
from mcp_app.catalog import bindings
from mcp_app.catalog.registry import Registry
from mcp_app.models.fields import digest
from tests.drill.models import Ledger
from tests.models.recording import as_committed, recorded


def line(key: str) -> dict[str, str]:
    return {"key": key}


def lines() -> list[str]:
    return []


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def connected(registry: Registry) -> Iterator[None]:
    registry.resource("ledger://{key}", model=Ledger)(line)
    registry.resource("ledger://all", model=Ledger)(lines)
    bindings.connect_signals(registry.bindings.values())
    bindings.connect_signals(registry.bindings.values())
    yield
    for uri in registry.bindings:
        for signal in (post_save, post_delete):
            signal.disconnect(dispatch_uid=f"mcp_app {uri}")


def entered(key: str) -> Ledger:
    made: Ledger = Ledger.objects.create(key=key, worker="w")
    return made


@pytest.mark.django_db
@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize(
    "change", [lambda row: row.save(), lambda row: row.delete()], ids=["save", "delete"]
)
def test_its_resources_change_with_an_instance(
    change: Callable[[Ledger], object],
) -> None:
    row = entered("a b")
    as_committed()
    change(row)
    assert set(recorded()) == {
        ("uri", digest("ledger://a%20b")),
        ("uri", digest("ledger://all")),
    }


@pytest.mark.django_db
@pytest.mark.usefixtures("connected")
def test_a_new_instance_is_a_change() -> None:
    entered("a")
    assert ("uri", digest("ledger://a")) in recorded()


class Page(Ledger):
    """A proxy of the model."""

    class Meta:
        proxy = True
        app_label = "drill"


@pytest.mark.django_db
@pytest.mark.usefixtures("connected")
def test_a_proxy_of_the_model_is_the_model() -> None:
    Page.objects.create(key="a", worker="w")
    assert ("uri", digest("ledger://a")) in recorded()


@pytest.mark.django_db
def test_other_models_change_nothing() -> None:
    entered("a")
    assert recorded() == []


def test_what_a_binding_shows(registry: Registry) -> None:
    for uri, function, shown, other in (
        ("ledger://{key}", line, "ledger://a%20b", "shop://a"),
        ("ledger://all", lines, "ledger://all", "ledger://a"),
    ):
        registry.resource(uri, model=Ledger)(function)
        assert registry.bindings[uri].may_show_uri(shown)
        assert not registry.bindings[uri].may_show_uri(other)


@pytest.mark.parametrize(
    ("uri", "function", "model", "said"),
    [
        ("ledger://{number}", lambda number: number, Ledger, "has no 'number'"),
        ("ledger://{key}", line, "shop.Order", "model"),
        ("ledger://{key}", line, dict, "It must be a Django model"),
        ("ledger://{key", line, Ledger, "key"),
    ],
)
def test_what_cannot_be_bound(
    registry: Registry, uri: str, function: Any, model: Any, said: str
) -> None:
    with pytest.raises(RegistrationError, match=said):
        registry.resource(uri, model=model)(function)
    assert registry.bindings == {}


def test_a_resource_without_a_model(registry: Registry) -> None:
    registry.resource("ledger://{key}")(line)
    assert registry.bindings == {}


def test_attributes_of_instances() -> None:
    assert bindings.missing_attributes(Ledger, ["pk", "id", "key"]) == []
