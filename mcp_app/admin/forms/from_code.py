"""The code of a registered function, for the read-only panel *From code*."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from mcp_app.admin.editors.parameters.parameter_tables import summaries
from mcp_app.admin.editors.parameters.parameter_values import type_label
from mcp_app.catalog.annotations import Annotation
from mcp_app.catalog.callables import MISSING
from mcp_app.catalog.registered_function import RegisteredFunction
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.row_loader import stored_definition
from mcp_app.interface.definitions import PromptDefinition, ToolDefinition
from mcp_app.interface.rules import visible
from mcp_app.kinds import KindError, complete, kinds_of
from mcp_app.models import Prompt, Tool
from mcp_app.protocol import jsonrpc


def declared_values(key: str, registry: Registry) -> Mapping[str, Any]:
    """Return what the panel shows of a function; `is_there` is False if it is gone."""
    function = registry.functions.get(key)
    if function is None:
        return {"key": visible(key), "is_there": False}
    return {"key": visible(key), "is_there": True, **values_of(function)}


def values_of(function: RegisteredFunction) -> Mapping[str, Any]:
    """Return what `mcp_app/widgets/function.html` shows of a function."""
    parameters = summaries(function.signature.input_schema)
    return {
        "description": visible(function.description, None),
        "parameters": [(each, type_label(each.type)) for each in parameters],
        "result": _result(function),
        "name": visible(function.qualified_name),
        "place": _place(function),
    }


def _result(function: RegisteredFunction) -> str:
    returned = function.inspected.returns
    return "" if returned is MISSING else _annotation(returned)


def _annotation(annotation: Annotation) -> str:
    if annotation is None or annotation is type(None):
        return "None"
    return visible(str(inspect.formatannotation(annotation)), None)


def _place(function: RegisteredFunction) -> str:
    """Return the file and line of a function; "" if it has no Python code."""
    innermost = inspect.unwrap(function.function)
    code = getattr(getattr(innermost, "__func__", innermost), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else ""


def own_schema(key: str, registry: Registry) -> str:
    """Return the input schema of a tool with an empty column as JSON; "" for none."""
    return _own(Tool(name="a", kind="function", config=_config(key)), registry)


def own_arguments(key: str, registry: Registry) -> str:
    """Return the arguments of a prompt with an empty column as JSON; "" for none."""
    return _own(Prompt(name="a", kind="function", config=_config(key)), registry)


def _config(key: str) -> str:
    return jsonrpc.write({"function": key}).decode()


def _own(row: Tool | Prompt, registry: Registry) -> str:
    if row.json("config")["function"] not in registry.functions:
        return ""
    try:
        stored = complete(stored_definition(row), kinds_of(registry))
    except KindError:
        return ""
    definition = stored.definition
    if isinstance(definition, ToolDefinition):
        return jsonrpc.write(definition.input_schema).decode()
    if isinstance(definition, PromptDefinition) and definition.arguments:
        return jsonrpc.write(
            [_argument(each) for each in definition.arguments]
        ).decode()
    return ""


def _argument(argument: Any) -> Mapping[str, object]:
    members = {
        name: getattr(argument, name)
        for name in ("name", "title", "description", "required")
    }
    return {name: value for name, value in members.items() if value}
