"""The kind `function`: a row chooses one of the functions that code registered.

Config: `{"function": "<key>"}`.  A row never holds code or an import path.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mcp_app.catalog.registry import RegisteredFunction
from mcp_app.catalog.runnable import Runnable
from mcp_app.interface.definitions import (
    EMPTY_SCHEMA,
    Definition,
    PromptArgument,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.errors import RegistrationError
from mcp_app.interface.questions import PromptOutput, ToolOutput
from mcp_app.kinds.kind import (
    NO_UPLOADS,
    AnyDefinition,
    Description,
    Incomplete,
    Kind,
    KindError,
    Missing,
    Problem,
    Uploads,
    refuse_unknown_members,
)
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.uri_templates import UriTemplate


class FunctionKind(Kind):
    """Runs functions of one registry."""

    name = _("Run a prepared function")
    examples = {
        ToolDefinition: _(
            "A function by a developer gives the answer. Example: “Orders"
            " of a customer”."
        ),
        ResourceDefinition: _(
            "A function by a developer gives the contents. Example: “What"
            " is in stock right now”."
        ),
        ResourceTemplateDefinition: _(
            "A function by a developer gives the contents. Example: “One order”."
        ),
        PromptDefinition: _(
            "A function by a developer makes the messages. Example: “Sum up an order”."
        ),
    }
    forms = {
        ToolDefinition: "mcp_app.admin.forms.tool.FunctionToolForm",
        ResourceDefinition: "mcp_app.admin.forms.resource.FunctionResourceForm",
        ResourceTemplateDefinition: "mcp_app.admin.forms.resource.FunctionTemplateForm",
        PromptDefinition: "mcp_app.admin.forms.prompt.FunctionPromptForm",
    }

    def missing(self) -> Missing | None:
        if self.registry.functions:
            return None
        reason = _(
            "No function is registered. A developer registers one in an app's mcp.py:"
        )
        return Missing(reason, '@mcp.function("shop.find_orders")')

    def complete(self, definition: AnyDefinition, config: JsonObject) -> AnyDefinition:
        """Add the schemas or arguments of the function, if it is registered."""
        function = self.registry.functions.get(str(config.get("function")))
        if function is None:
            return definition
        schema = function.signature.input_schema
        changes: dict[str, Any] = {}
        try:
            if isinstance(definition, ToolDefinition):
                changes["input_schema"] = schema
                changes["output_schema"] = function.signature.output_schema
            elif isinstance(definition, PromptDefinition):
                changes["arguments"] = _arguments(schema)
            return replace(definition, **changes)
        except RegistrationError as error:
            raise KindError(str(error)) from None

    def describe(self, definition: Definition, config: JsonObject) -> Description:
        return [(gettext("Function"), str(config.get("function", "")))]

    def tool_runnable(
        self,
        definition: ToolDefinition,
        config: JsonObject,
        uploads: Uploads = NO_UPLOADS,
    ) -> Runnable[ToolOutput]:
        function = self._fitting_function(definition, config)
        try:
            promised = definition.output_schema is not None
            if promised and function.signature.output_schema is None:
                # Without a return type, the row's schema counts: it is an object.
                function = RegisteredFunction(
                    function.function,
                    key=function.key,
                    atomic=function.atomic,
                    database=function.database,
                    returns=dict,
                )
            return function.tool_runnable()
        except RegistrationError as error:
            raise KindError(str(error)) from None

    def resource_runnable(
        self, definition: Definition, config: JsonObject, uploads: Uploads = NO_UPLOADS
    ) -> Runnable[object]:
        return self._fitting_function(definition, config).resource_runnable()

    template_runnable = resource_runnable

    def prompt_runnable(
        self, definition: Definition, config: JsonObject, uploads: Uploads = NO_UPLOADS
    ) -> Runnable[PromptOutput]:
        return self._fitting_function(definition, config).prompt_runnable()

    def config_problems(
        self, definition: Definition, config: JsonObject, uploads: Uploads = NO_UPLOADS
    ) -> list[Problem]:
        """Return also the parameters of the row that the function does not take."""
        try:
            function = self._configured_function(config)
        except KindError as error:
            return [Problem.from_error(error)]
        field, schema = _client_arguments(definition)
        return [Problem(field, each) for each in function.schema_problems(schema)]

    def _fitting_function(
        self, definition: Definition, config: JsonObject
    ) -> RegisteredFunction:
        function = self._configured_function(config)
        field, schema = _client_arguments(definition)
        if sentences := function.schema_problems(schema):
            raise KindError(" ".join(sentences), field)
        return function

    def _configured_function(self, config: JsonObject) -> RegisteredFunction:
        refuse_unknown_members(config, "function")
        if not config:
            raise Incomplete("Choose a function.")
        key = config.get("function")
        if not isinstance(key, str) or not key:
            raise KindError("Choose a function.")
        functions = self.registry.functions
        if key in functions:
            return functions[key]
        advice = "A developer registers one with @mcp.function in an app's mcp.py"
        if close := difflib.get_close_matches(key, functions, 3):
            advice = f"Similar names: {', '.join(close)}"
        elif functions:
            advice = f"Registered: {', '.join(sorted(functions)[:10])}"
        raise KindError(f"No function is registered as “{key}”. {advice}.")


def _arguments(schema: Mapping[str, Any]) -> tuple[PromptArgument, ...]:
    required = schema.get("required", ())
    return tuple(
        PromptArgument(
            name=name,
            title=str(about.get("title", "")),
            description=str(about.get("description", "")),
            required=name in required,
        )
        for name, about in schema.get("properties", {}).items()
    )


def _client_arguments(definition: Definition) -> tuple[str, Mapping[str, object]]:
    """Return the column that says what clients may send, and its JSON Schema."""
    if isinstance(definition, ToolDefinition):
        return "input_schema", definition.input_schema
    if isinstance(definition, PromptDefinition):
        required = [each.name for each in definition.arguments if each.required]
        names = [argument.name for argument in definition.arguments]
        return "arguments", _strings_schema(names, required)
    if isinstance(definition, ResourceTemplateDefinition):
        names = list(UriTemplate.parse(definition.uri_template).variables)
        return "uri_template", _strings_schema(names, names)
    return "config", EMPTY_SCHEMA


def _strings_schema(names: Collection[str], required: Collection[str]) -> JsonObject:
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": list(required),
    }
