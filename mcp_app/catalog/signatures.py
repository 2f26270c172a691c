"""The parameters of a function: their JSON Schema, and how JSON becomes their types."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, NotRequired, Required, cast

from pydantic import ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from mcp_app.catalog.callables import MISSING, Inspection, Parameter
from mcp_app.catalog.json_schemas import bytes_config, json_schema, type_adapter
from mcp_app.catalog.outputs import ToolReturns, jsonable_value, tool_returns
from mcp_app.catalog.runnable import ArgumentsRefused
from mcp_app.catalog.type_hints import (
    Annotation,
    bare_hint,
    for_pydantic,
    hint_metadata,
    is_kind,
    typed_dict,
    without_metadata,
    without_none,
)
from mcp_app.interface.errors import RegistrationError
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.headers import mirrored_parameters
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.portable_schemas import portable_schema
from mcp_app.protocol.schemas import Violation, with_example

if TYPE_CHECKING:
    from mcp_app.catalog.form_schemas import FormParameter


@dataclass(frozen=True, slots=True)
class Header:
    """Marks a parameter that HTTP requests repeat in `Mcp-Param-<name>`.

    It is for strings, integers and booleans, and never for secrets: proxies see the
    value (server/tools, `x-mcp-header`).
    """

    name: str


class Signature:
    """The parameters of a function as a client sees them, and what it returns.

    Raises `RegistrationError` for a type that has no JSON form.
    """

    def __init__(self, function: Inspection) -> None:
        self.function = function
        self.form = _form_parameter(function)
        """The parameter that gets a form; clients send the form's fields instead."""
        self._parameters = [
            parameter
            for parameter in function.parameters
            if self.form is None or parameter.name != self.form.name
        ]
        try:
            arguments = type_adapter(function.qualified_name, self._arguments_type())
            self.input_schema = json_schema(
                function.qualified_name, arguments, "validation"
            )
            """An object schema that allows no other properties."""
            if self.form is not None:
                self._add_fields(self.form)
            self.input_schema = portable_schema(self.input_schema)
            mirrored_parameters(self.input_schema)
        except RegistrationError:
            self._check_parameters()
            raise
        except ValueError as error:
            raise RegistrationError(f"{function.qualified_name}: {error}") from None
        types = {each.name: each.annotation for each in function.parameters}
        plain = all(each in (str, int, float, bool) for each in types.values())
        self.types = types if plain else None
        """The types of all parameters; None if one of them needs a conversion."""
        self._needed = {each.name for each in function.parameters if _is_required(each)}
        self._validate = cast(
            "Callable[[JsonObject], dict[str, object]]",
            arguments.validator.validate_python,
        )

    def _add_fields(self, form: FormParameter) -> None:
        """Add the fields of a form to the schema of the other parameters."""
        schema = self.input_schema
        fields = form.properties(self.function.documentation.parameters)
        if both := fields.keys() & schema["properties"].keys():
            raise RegistrationError(
                f"{self.function.qualified_name}: {', '.join(sorted(both))} is a"
                f" parameter, and a field of {form.source.__name__}, too."
            )
        schema["properties"] = {**schema["properties"], **fields}
        if required := [*schema.get("required", ()), *form.required_names]:
            schema["required"] = required

    @property
    def run(self) -> Callable[..., object]:
        """The callable that takes arguments by keyword; form values are one dict."""
        function = self.function
        if self.form is None:
            return function.run
        return self.form.wrap_function(function.run, is_async=function.style == "async")

    def _check_parameters(self) -> None:
        function = self.function.qualified_name
        for each in self._parameters:
            owner = f"{function}: the parameter {each.name}"
            try:
                types = type_adapter(owner, _parameter_hint(each))
                json_schema(owner, types, "validation")
            except RegistrationError:
                # Models can be imported only after Django is set up.
                from mcp_app.catalog import django_types  # noqa: PLC0415

                django_types.check_parameter(function, each.name, each.annotation)
                raise

    @cached_property
    def returns(self) -> ToolReturns:
        """The output schema and the converter of the function as a tool."""
        return tool_returns(self.function.qualified_name, self.function.returns)

    @property
    def output_schema(self) -> JsonObject | None:
        return self.returns.schema

    def bind_arguments(self, arguments: JsonObject) -> dict[str, object]:
        """Turn JSON into keyword arguments; raise `ArgumentsRefused`.

        Conversion is lax: strings from URIs and prompts become numbers and dates.  The
        schema has checked the values before.
        """
        if self._are_plain(arguments):
            return dict(arguments)
        if self.form is not None:
            names = {parameter.name for parameter in self._parameters}
            values = {n: value for n, value in arguments.items() if n not in names}
            others = {n: value for n, value in arguments.items() if n in names}
            return {**self._validate_others(others), self.form.name: values}
        return self._validate_others(arguments)

    def _validate_others(self, arguments: JsonObject) -> dict[str, object]:
        try:
            return self._validate(arguments)
        except ValidationError as error:
            violations = _violations(error, arguments, self.input_schema)
            raise ArgumentsRefused(list(violations)) from None

    def _are_plain(self, arguments: JsonObject) -> bool:
        types = self.types
        if types is None:
            return False
        for name, value in arguments.items():
            if types.get(name) is not type(value):
                return False
        return self._needed <= arguments.keys()

    def schema_problems(self, schema: Mapping[str, Any]) -> list[str]:
        """Return why the function could not take arguments that fit an input schema."""
        inputs = self.input_schema
        needed = set(inputs.get("required", ())).difference(schema.get("required", ()))
        function = f"The function {self.function.name}"
        return [
            f"{function} has no parameter {name!r}."
            for name in schema.get("properties", {})
            if name not in inputs["properties"]
        ] + [
            f"{function} requires {name!r}, but the schema does not."
            for name in sorted(needed)
        ]

    def _arguments_type(self) -> type:
        # A TypedDict leaves out missing arguments, so that the function's own defaults
        # count.  To validate two numbers takes 0.2 µs.
        members: dict[str, Annotation] = {}
        for each in self._parameters:
            hint = _parameter_hint(each)
            hint = Annotated[(hint, *self._field_extras(each))]
            members[each.name] = (Required if _is_required(each) else NotRequired)[hint]
        shape = typed_dict("Arguments", members)
        hints = [parameter.annotation for parameter in self._parameters]
        config = ConfigDict(extra="forbid", **bytes_config(*hints))
        setattr(shape, "__pydantic_config__", config)  # noqa: B010 - unknown to mypy
        return shape

    def _field_extras(self, parameter: Parameter) -> Iterator[object]:
        """Yield the extras of a parameter's hint; later ones override earlier ones."""
        extras = hint_metadata(parameter.annotation)
        text = next((extra for extra in extras if isinstance(extra, str)), None)
        documented = self.function.documentation.parameters.get(parameter.name)
        yield Field(description=text or documented)
        yield from (extra for extra in extras if not isinstance(extra, str | Header))
        if isinstance(parameter.default, FieldInfo):
            yield parameter.default
        yield Field(json_schema_extra=dict(_schema_members(parameter)))


def _form_parameter(function: Inspection) -> FormParameter | None:
    """Return the parameter that is a Django form; there can be only one."""
    loaded = sys.modules.get("django.forms")
    if loaded is None:
        # If no form is imported, no function has one; this avoids a slow import.
        return None
    kind = loaded.BaseForm
    forms = [
        parameter
        for parameter in function.parameters
        if is_kind(bare_hint(parameter.annotation), kind)
    ]
    if len(forms) > 1:
        names = ", ".join(form.name for form in forms)
        raise RegistrationError(f"{function.qualified_name} takes two forms: {names}.")
    for form in forms:
        from mcp_app.catalog.form_schemas import FormParameter  # noqa: PLC0415

        source = bare_hint(form.annotation)
        return FormParameter(function.qualified_name, form.name, source)
    return None


def _parameter_hint(parameter: Parameter) -> Annotation:
    if parameter.annotation is MISSING:
        return Any
    hint = for_pydantic(without_metadata(parameter.annotation))
    # A header has a plain value: clients leave it out instead of sending null.
    return without_none(hint) if _parameter_header(parameter) else hint


def _is_required(parameter: Parameter) -> bool:
    if isinstance(parameter.default, FieldInfo):
        return parameter.default.is_required()
    return parameter.is_required


def _parameter_header(parameter: Parameter) -> Header | None:
    extras = hint_metadata(parameter.annotation)
    return next((extra for extra in extras if isinstance(extra, Header)), None)


def _schema_members(parameter: Parameter) -> Iterator[tuple[str, Any]]:
    header = _parameter_header(parameter)
    if header is not None:
        yield "x-mcp-header", header.name
    default = parameter.default
    if parameter.is_required or isinstance(default, FieldInfo):
        return
    if default is None and header is not None:
        return  # A header cannot be null.
    # A default without a JSON form is not shown; the function still has it.
    with suppress(TypeError, jsonrpc.UnserializableValue):
        yield "default", jsonrpc.read(jsonrpc.write(jsonable_value(default)))


_LIMIT: Final = re.compile(
    "greater|less|decimal_(max|whole)|too_|future|past|multiple|finite|literal|enum"
)
"""Kinds of problems whose message needs no example, because it names the rule."""


def _violations(
    error: ValidationError, arguments: JsonObject, schema: JsonObject
) -> Iterator[Violation]:
    """Yield one violation for each path; pydantic tells one for each union branch."""
    paths = set()
    for problem in error.errors(include_url=False, include_context=False):
        kind, message = problem["type"], problem["msg"].rstrip(".")
        path, part = _locate_problem(problem["loc"], arguments, schema)
        # The last step to a missing member is its name, which the value lacks.
        if kind == "missing":
            path.append(problem["loc"][-1])
        elif not _LIMIT.search(kind):
            message = with_example(message, part)
        path_text = jsonrpc.path_text(path)
        if path_text not in paths:
            yield Violation(path_text, kind, f"{message}.")
        paths.add(path_text)


def _locate_problem(
    steps: Iterable[int | str], value: Any, schema: JsonObject
) -> tuple[list[int | str], JsonObject]:
    """Return where a problem is, and the schema there; {} if there is none.

    Steps that the value lacks are left out: Pydantic adds the branches of unions.
    """
    path, root = [], schema
    for step in steps:
        try:
            value = value[step]
        except (LookupError, TypeError):
            continue
        path.append(step)
        schema = next(_inner_schemas(schema, step, root), {})
    return path, _referenced_schema(schema, root)


def _inner_schemas(
    schema: JsonObject, step: int | str, root: JsonObject
) -> Iterator[JsonObject]:
    """Yield the schemas that an index or the name of a member leads to."""
    schema = _referenced_schema(schema, root)
    for branch in schema.get("anyOf") or schema.get("oneOf") or ():
        yield from _inner_schemas(branch, step, root)
    if isinstance(step, int):
        yield from schema.get("prefixItems", ())[step : step + 1]
        inner = schema.get("items")
    else:
        inner = schema.get("properties", {}).get(step)
        inner = inner or schema.get("additionalProperties")
    if isinstance(inner, dict):
        yield inner


def _referenced_schema(schema: JsonObject, root: JsonObject) -> JsonObject:
    name = schema.get("$ref", "").rpartition("/")[2]
    return root["$defs"][name] if name else schema
