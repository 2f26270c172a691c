"""Two processes with one fingerprint run the same functions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Final

import pytest

from mcp_app.catalog.autodiscovery import fingerprint
from mcp_app.catalog.registry import Registry
from tests.drill.running import OWN, ROOT

PRINT: Final = """
import django
django.setup()
from mcp_app.catalog.autodiscovery import fingerprint
from mcp_app.catalog.registry import mcp
print(fingerprint(mcp))
"""


def declared(declare: Callable[[Registry], object]) -> str:
    registry = Registry()
    declare(registry)
    return fingerprint(registry)


def named(function: Callable[[str], bool]) -> Callable[[str], bool]:
    function.__qualname__ = "find"
    return function


def one(registry: Registry) -> None:
    def find(text: str) -> bool:
        return text in {"a", "b"}

    registry.tool("find")(named(find))


def other_code(registry: Registry) -> None:
    def find(text: str) -> bool:
        return text in {"a", "c"}

    registry.tool("find")(named(find))


def other_title(registry: Registry) -> None:
    def find(text: str) -> bool:
        return text in {"a", "b"}

    registry.tool("find", title="Find")(named(find))


def function(registry: Registry) -> None:
    def find(text: str) -> bool:
        return text in {"a", "b"}

    registry.function("find")(named(find))


def test_it_is_the_same_for_the_same_code() -> None:
    assert declared(one) == declared(one)


@pytest.mark.parametrize("declare", [other_code, other_title, function])
def test_it_tells_code_apart(declare: Callable[[Registry], object]) -> None:
    assert declared(declare) != declared(one)


def test_what_is_no_function_counts_for_nothing() -> None:
    def bound(registry: Registry) -> None:
        one(registry)
        registry.bindings["shop://a"] = object()  # type: ignore[assignment]

    assert declared(bound) == declared(one)


def test_every_process_finds_the_same() -> None:
    found = set()
    for seed in ("1", "2"):
        inherited = {name: each for name, each in os.environ.items() if name not in OWN}
        settings = {"DJANGO_SETTINGS_MODULE": "tests.drill.settings"}
        done = subprocess.run(
            [sys.executable, "-c", PRINT],
            cwd=ROOT,
            env={**inherited, **settings, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout)
    assert len(found) == 1
