"""docs/reference.md has each public name, and each option of a decorator."""

from __future__ import annotations

import re
from inspect import signature
from typing import Final

import pytest

import mcp_app
from mcp_app.catalog.decorators import (
    ModelOptions,
    ResourceOptions,
    RuleOptions,
    ToolOptions,
)
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.toolset_options import (
    AdminToolOptions,
    ModelToolOptions,
    RestToolOptions,
)
from mcp_app.interface.context import Context
from tests.apart import ROOT

MEMBERS: Final = {name for name in dir(Context) if not name.startswith("_")}
_OPTIONS: Final = (
    *(ToolOptions, ResourceOptions, RuleOptions, ModelOptions),
    ModelToolOptions,
    AdminToolOptions,
    RestToolOptions,
)
OPTIONS: Final = {name for options in _OPTIONS for name in options.__annotations__} | {
    *signature(Registry.open_model).parameters
} - {"self", "model", "options"}


@pytest.mark.parametrize("names", [{*mcp_app.__all__}, OPTIONS, MEMBERS])
def test_each_public_name_stands_there(names: set[str]) -> None:
    assert len(names) > 10
    code = re.findall(r"`([^`]+)`", (ROOT / "docs/reference.md").read_text("utf-8"))
    assert names - {*re.findall(r"\w+", "\n".join(code))} == set()
