"""When the tools of toolsets are made, and what stands where one cannot be."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.checks import WARNING, Error
from django.db import models
from django.test.utils import isolate_apps, modify_settings

from mcp_app.catalog.autodiscovery import fingerprint
from mcp_app.catalog.findings import collecting
from mcp_app.catalog.registered_function import DeclaredTool
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.toolset_options import Toolset
from mcp_app.checks import modules
from mcp_app.checks.modules import check_toolsets
from mcp_app.interface.errors import RegistrationError
from mcp_app.toolsets import models as maker
from tests.drill.models import Order, Stock


@pytest.fixture
def registry() -> Registry:
    registry = Registry()
    registry.open_model(Stock, fields=["sku", "level"], rows="all", permission="")
    return registry


NAMES = {"stock_list", "stock_get", "stock_count"}


@pytest.fixture
def before_making(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets the maker call a function with the registry, before it makes anything."""
    declare_tools = maker.declare_tools

    def let_call(act: Callable[[Registry], object]) -> None:
        def declare(toolset: Toolset, known: Registry) -> Iterator[DeclaredTool]:
            act(known)
            yield from declare_tools(toolset, known)

        monkeypatch.setattr(maker, "declare_tools", declare)

    return let_call


def test_tools_are_made_once_when_they_are_asked_for(
    registry: Registry, before_making: Callable[..., None]
) -> None:
    # What a maker looks up may ask for tools, too.
    known_tools: list[object] = []
    before_making(lambda known: known_tools.append({**known.tools}))
    registry.model_tools(Stock)
    assert known_tools == []
    assert {*registry.tools} == NAMES
    assert registry.tools is registry.tools
    assert known_tools == [{}]


async def test_beside_a_loop_a_thread_makes_them(
    registry: Registry, before_making: Callable[..., None]
) -> None:
    """There Django refuses statements."""
    threads: list[int] = []
    before_making(lambda _: threads.append(threading.get_ident()))
    registry.model_tools(Stock)
    assert {*registry.tools} == NAMES
    assert threads != [threading.get_ident()]


def test_other_threads_wait_for_all_tools(
    registry: Registry, before_making: Callable[..., None]
) -> None:
    names: list[set[str]] = []
    other = threading.Thread(target=lambda: names.append({*registry.tools}))

    def start_other(_: Registry) -> None:
        other.start()
        # If it did not wait, it would have read by now.
        other.join(0.2)

    before_making(start_other)
    registry.model_tools(Stock)
    assert {*registry.tools} == NAMES
    other.join()
    assert names == [NAMES]


def test_a_line_that_is_loaded_again_replaces_its_tools(registry: Registry) -> None:
    fingerprints = set()
    for only in (["list"], ["list", "get"]):
        registry.model_tools(Stock, only=only)
        fingerprints.add(fingerprint(registry))
    assert {*registry.tools} == {"stock_list", "stock_get"}
    assert len(fingerprints) == 2


def test_a_toolset_stands_once(registry: Registry) -> None:
    registry.model_tools(Stock)
    with pytest.raises(RegistrationError, match=r"test_complete\.py:\d+ already"):
        registry.model_tools(Stock)
    registry.model_tools(Stock, name="shelf", only=["get"])
    assert "shelf_get" in registry.tools


UNMADE = {
    "No code opens drill.Order. Write mcp.open_model(Order": (Order, {}),
    "mcp.model_tools('shop.Order'): It must be a Django model": ("shop.Order", {}),
    "“weight” of drill.Stock cannot be shown": (Stock, {"fields": ["weight"]}),
    "“weight” of drill.Stock cannot be asked by": (Stock, {"filters": ["weight"]}),
    "“level” cannot be asked by “words”": (Stock, {"search": ["level"]}),
    "only names 'delete'. There is list, get, count.": (Stock, {"only": ["delete"]}),
    "“a b_list” cannot be a name": (Stock, {"name": "a b"}),
    "the tool 'stock_get' is already declared by": (Stock, {"only": ["get"]}),
    "“not a permission” is not a permission": (
        Stock,
        {"name": "x", "permission": "not a permission"},
    ),
}


@pytest.mark.parametrize("sentence", UNMADE)
def test_what_cannot_be_made_is_left_out_and_told(
    registry: Registry, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, options = UNMADE[sentence]

    @registry.tool
    def stock_get() -> None: ...

    registry.model_tools(model, **options)  # type: ignore[arg-type]
    registry.model_tools(Stock, name="fine")
    names = {*registry.tools}
    assert names == {"stock_get", "fine_list", "fine_get", "fine_count"}
    monkeypatch.setattr(modules, "mcp", registry)
    [error] = check_toolsets(None)
    assert isinstance(error, Error)
    assert error.id == "mcp_app.E022"
    assert sentence in error.msg
    assert "test_complete.py" in error.msg
    assert error.msg.endswith("None of its tools is served.")
    # A site without tables or staff yet must come to have them.
    for command in ("makemigrations", "migrate", "createsuperuser"):
        monkeypatch.setattr(sys, "argv", ["manage.py", command])
        [warning] = check_toolsets(None)
        assert (warning.id, warning.level) == ("mcp_app.E022", WARNING)


@modify_settings(INSTALLED_APPS={"remove": "django.contrib.admin"})
def test_a_site_without_an_admin_is_told_so(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    registry.admin_tools()
    assert registry.tools == {}
    [sentence] = registry.toolset_problems
    assert 'no admin. Add "django.contrib.admin" to INSTALLED_APPS' in sentence
    assert not caplog.records


@isolate_apps("tests.drill")
def test_filters_do_not_take_our_names(registry: Registry) -> None:
    class Odd(models.Model):  # noqa: DJ008
        sort = models.BooleanField()
        count = models.BooleanField()

        class Meta:
            app_label = "drill"

    registry.open_model(Odd, fields=["sort", "count"], rows="all", permission="")
    registry.model_tools(Odd)
    schema: Any = registry.tools["odd_count"].definition.input_schema
    assert schema["properties"]["by"]["enum"] == ["sort"]
    [remark] = registry.toolset_remarks
    assert "'sort' is the name of a parameter of ours, so no filter can" in remark
    registry.model_tools(Odd, name="strange", filters=["sort"])
    assert "strange_list" not in registry.tools
    assert "'sort' is the name of a parameter of ours" in str(registry.toolset_problems)


@isolate_apps("tests.drill")
def test_what_may_be_empty_can_be_asked_for(registry: Registry) -> None:
    class Note(models.Model):  # noqa: DJ008
        state = models.CharField(max_length=5, blank=True, choices=[("a", "A")])
        level = models.IntegerField(blank=True, choices=[(1, "One")])
        title = models.CharField(max_length=5)

        class Meta:
            app_label = "drill"

    names = ["state", "level", "title"]
    registry.open_model(Note, fields=names, rows="all", permission="")
    registry.model_tools(Note, filters=names)
    schema: Any = registry.tools["note_list"].definition.input_schema
    found = [each for each in schema["properties"] if each.endswith("_empty")]
    assert found == ["state_empty"]


def test_a_maker_that_fails_is_told_and_logged(
    registry: Registry,
    before_making: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    before_making(lambda known: known.rules["no such rule"])
    registry.model_tools(Stock)
    assert registry.tools == {}
    [sentence] = registry.toolset_problems
    assert "it stops with KeyError: 'no such rule'. None of its" in sentence
    [record] = caplog.records
    assert record.exc_info is not None


def test_options_are_read_where_they_stand(registry: Registry) -> None:
    with collecting(registry.problems):
        registry.model_tools(Stock, sort="level")  # type: ignore[call-arg]
        registry.model_tools(Stock, search="sku")
        registry.model_tools(Stock, only=3)  # type: ignore[arg-type]
        registry.model_tools()  # type: ignore[call-arg]
    for problem, sentence in zip(registry.problems, UNREAD, strict=True):
        assert "test_complete.py" in problem
        assert sentence in problem
    assert registry.tools == {}


UNREAD = [
    "mcp.model_tools has no option 'sort'. It has",
    "The option search is 'sku': write a list.",
    "The option only is 3: it must be",
    "mcp.model_tools got nothing. Write it like mcp.model_tools(Order).",
]
