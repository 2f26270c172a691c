"""The options of lines in code that ask for tools, such as `mcp.model_tools(Order)`.

Such a line looks nothing up: `mcp_app.toolsets` makes the tools when somebody first
asks for them, after all models, URLs and pages of the site are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from mcp_app.catalog.findings import Origin
from mcp_app.interface.errors import RegistrationError
from mcp_app.interface.rules import AccessRequirements, read_requirements


class ToolsetOptions(TypedDict, total=False):
    """What all toolsets take.

    The names of the tools begin with `name`; if `only` is given, only these are made.
    """

    name: str
    only: Sequence[str]
    tags: Iterable[str]
    permission: str
    groups: Iterable[str]
    rule: str | Callable[..., Any]


class ModelToolOptions(ToolsetOptions, total=False):
    """What `model_tools` takes; all fields that it names are opened.

    `search` are the text fields that the search looks at, by default the one that
    stands for a row.  `fields` are shown, and callers filter by `filters`; by default
    they are all opened fields without a permission of their own.
    """

    search: Sequence[str]
    fields: Sequence[str]
    filters: Sequence[str]


class AdminToolOptions(ToolsetOptions, total=False):
    """What `admin_tools` takes.

    `site` is another `AdminSite` than Django's default.  `models` can be read, by
    default all without secrets.  The rows of the models in `change` can be changed.
    """

    site: Any
    models: Sequence[Any]
    change: Sequence[Any]


class RestToolOptions(ToolsetOptions, total=False):
    """What `rest` takes: `prefix` says where the view is in the URLconf.

    `parameters` are the optional ones of addresses and headers that its tools have; by
    default all, or the first 50.
    With `stand_in` the caller gets in also if the view authenticates others than users
    of the site.
    """

    prefix: str
    version: str
    parameters: Sequence[str]
    stand_in: bool


@dataclass(frozen=True, slots=True, eq=False)
class Toolset:
    """A line of code that asks for tools, and its place.

    `maker` is the module of `mcp_app.toolsets` that makes them.
    """

    maker: str
    call: str
    """The line of code for messages: "mcp.model_tools(shop.Order)"."""
    subject: Any
    options: Mapping[str, Any]
    origin: Origin

    @property
    def demands(self) -> AccessRequirements:
        """What all its tools demand of callers; each tool may demand more."""
        return read_requirements(self.options)

    @property
    def tags(self) -> frozenset[str]:
        return frozenset(self.options.get("tags", ()))

    def wanted_tools(self, names: Sequence[str]) -> Sequence[str]:
        """Return the `names` that the option `only` has, too; without it, all."""
        only = self.options.get("only", names)
        for name in only:
            if name not in names:
                raise RegistrationError(
                    f"only names {name!r}. There is {', '.join(names)}."
                )
        return [each for each in names if each in only]
