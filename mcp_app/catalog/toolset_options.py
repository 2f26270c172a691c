"""What code asks of toolsets, in lines such as `mcp.model_tools(Order)`.

Nothing is looked up where they stand: `mcp_app.toolsets` makes the tools when somebody
first asks for them, when all models, URLs and pages of the site are there.
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

    The names of its tools begin with `name`; `only` names those that are made.
    """

    name: str
    only: Sequence[str]
    tags: Iterable[str]
    permission: str
    groups: Iterable[str]
    rule: str | Callable[..., Any]


class ModelToolOptions(ToolsetOptions, total=False):
    """What `model_tools` takes; all fields that it names are opened.

    `search` are the texts that one parameter looks at, by default the one that stands
    for a row; `fields` are shown, `filters` may be asked by, by default all that are
    opened and demand no permission of their own.
    """

    search: Sequence[str]
    fields: Sequence[str]
    filters: Sequence[str]


class AdminToolOptions(ToolsetOptions, total=False):
    """What `admin_tools` takes.

    `site` is an `AdminSite` of the site's own; `models` are those that are read, by
    default all without secrets; `change` are those whose rows may be changed.
    """

    site: Any
    models: Sequence[Any]
    change: Sequence[Any]


class RestToolOptions(ToolsetOptions, total=False):
    """What `rest` takes: which place of the view in the URLconf, which version of it.

    `parameters` are those of addresses and headers that its tools have, beside required
    ones; by default all, or the first 50.
    With `stand_in` the caller comes in also where the view authenticates others than
    users of the site.
    """

    prefix: str
    version: str
    parameters: Sequence[str]
    stand_in: bool


@dataclass(frozen=True, slots=True, eq=False)
class Toolset:
    """A line that asks for tools, and where it stands.

    `maker` is the module of `mcp_app.toolsets` that makes them.
    """

    maker: str
    call: str
    """The line, for sentences: "mcp.model_tools(shop.Order)"."""
    subject: Any
    options: Mapping[str, Any]
    origin: Origin

    @property
    def demands(self) -> AccessRequirements:
        """What its tools demand of callers, beside each tool's own demands."""
        return read_requirements(self.options)

    @property
    def tags(self) -> frozenset[str]:
        return frozenset(self.options.get("tags", ()))

    def wanted_tools(self, names: Sequence[str]) -> Sequence[str]:
        """Return the names, among these, of the tools to make."""
        only = self.options.get("only", names)
        for name in only:
            if name not in names:
                raise RegistrationError(
                    f"only names {name!r}. There is {', '.join(names)}."
                )
        return [each for each in names if each in only]
