"""A function that code registered; it can run behind any definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from mcp_app.catalog.callables import MISSING, Function, inspect_function
from mcp_app.catalog.findings import Place
from mcp_app.catalog.outputs import completion, prompt_output, scalar_output
from mcp_app.catalog.runnable import Runnable, leave_unconverted
from mcp_app.catalog.signatures import Signature
from mcp_app.catalog.type_hints import SCALARS, Annotation
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.errors import RegistrationError
from mcp_app.interface.questions import Completion, PromptOutput, ToolOutput
from mcp_app.protocol.headers import is_plain_value
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.schemas import Validator

AnyDefinition = TypeVar("AnyDefinition", bound=Definition)
Output = TypeVar("Output")

_COMPLETING = ("value", "arguments")


class RegisteredFunction:
    """A function with its key, and how it is run.

    Without a key, the key is the function's own name.  If `atomic` is None,
    ATOMIC_REQUESTS counts; `database` runs an async function in a thread, where the ORM
    has a connection of its own.  `returns` replaces a missing return annotation.
    """

    def __init__(
        self,
        function: Function,
        *,
        key: str = "",
        atomic: bool | None = None,
        database: bool = False,
        returns: Annotation = MISSING,
    ) -> None:
        self.function = function
        self.atomic = atomic
        self.database = database
        self.inspected = inspect_function(function)
        self.key = key or self.inspected.name
        if self.inspected.returns is MISSING:
            self.inspected = replace(self.inspected, returns=returns)
        self.signature = Signature(self.inspected)
        in_thread = self.style == "sync" or database or atomic
        if self.signature.form is not None and not in_thread:
            raise RegistrationError(
                f"{self.qualified_name} takes a form, which may read rows before it is"
                " valid. Write def in place of async def, or set database=True."
            )

    def __repr__(self) -> str:
        return f"<RegisteredFunction {self.key!r}: {self.qualified_name}>"

    @property
    def qualified_name(self) -> str:
        return self.inspected.qualified_name

    @property
    def style(self) -> Literal["async", "sync"]:
        return self.inspected.style

    @property
    def description(self) -> str:
        """The part of the docstring before the parameters."""
        return self.inspected.documentation.text

    def schema_problems(self, schema: Mapping[str, Any]) -> list[str]:
        """Return why the function could not take arguments that fit an input schema."""
        return self.signature.schema_problems(schema)

    def tool_runnable(self) -> Runnable[ToolOutput]:
        """Return the function as a tool; `RegistrationError` for a bad return type."""
        signature = self.signature
        run = self._build_runnable(signature.returns.convert, signature.bind_arguments)
        return replace(run, types=signature.types)

    def resource_runnable(self) -> Runnable[object]:
        """Return the function as a resource or a template.

        Its result is not converted: `outputs.resource_output` does that with the URI.
        """
        return self._build_runnable(leave_unconverted, self.signature.bind_arguments)

    def prompt_runnable(self) -> Runnable[PromptOutput]:
        """Return the function as a prompt."""
        return self._build_runnable(prompt_output, self.signature.bind_arguments)

    def completion_runnable(self) -> Runnable[Completion]:
        """Return the function as a completer, bound to a value and other arguments.

        Of `{"value": "par", "arguments": {"country": "fr"}}` the first parameter gets
        the value, the second the arguments; their names are free.  Both are optional.
        """
        parameters = self.inspected.parameters
        names = [parameter.name for parameter in parameters[: len(_COMPLETING)]]
        if any(each.is_required for each in parameters[len(_COMPLETING) :]):
            raise RegistrationError(
                f"{self.qualified_name} completes an argument, so it can take only"
                " the value, the other arguments and the context."
            )

        def bind_completion(arguments: JsonObject) -> dict[str, object]:
            values = (arguments[member] for member in _COMPLETING)
            return dict(zip(names, values, strict=False))

        return self._build_runnable(completion, bind_completion)

    def _build_runnable(
        self,
        convert: Callable[[object], Output],
        bind: Callable[[JsonObject], dict[str, object]],
    ) -> Runnable[Output]:
        return Runnable(
            run=self.signature.run,
            style=self.style,
            bind=bind,
            convert=convert,
            context=self.inspected.context,
            atomic=self.atomic,
            database=self.database,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ReadyFunction:
    """What runs behind a tool of a toolset, or a skill, instead of a function of code.

    Its name is the line of code that asks for it: "mcp.model_tools(shop.Order)".  The
    `request` is the one that it makes to the site: "GET /api/orders/".
    """

    qualified_name: str
    place: Place
    run: Runnable[Any]
    request: str = ""

    def tool_runnable(self) -> Runnable[ToolOutput]:
        """Return what answers the calls, as a registered function does."""
        return self.run

    def resource_runnable(self) -> Runnable[object]:
        """Return what answers the reads, as a registered function does."""
        return self.run


@dataclass(frozen=True, slots=True)
class Declaration(Generic[AnyDefinition]):
    """A definition that code declares, and the function behind it."""

    definition: AnyDefinition
    function: RegisteredFunction | ReadyFunction


DeclaredTool: TypeAlias = Declaration[ToolDefinition]
DeclaredResource: TypeAlias = Declaration[ResourceDefinition]
DeclaredTemplate: TypeAlias = Declaration[ResourceTemplateDefinition]
DeclaredPrompt: TypeAlias = Declaration[PromptDefinition]


# -- plain tool ------------------------------------------------------------------------
# What a simple call of a tool needs, prepared once for each revision.
#
# `transports.http.plain_call` serves such calls.


@dataclass(frozen=True, slots=True)
class PlainTool:
    """A tool without rules and parameters in headers, ready to be called."""

    names: tuple[str, ...]
    types: tuple[type, ...] | None
    """Arguments with exactly these names and types fit, and need no conversion."""
    fits: Callable[[JsonObject], bool]
    """Tells whether arguments fit the schema."""
    bind: Callable[[JsonObject], dict[str, object]]
    run: Callable[..., Any]
    convert: Callable[[object], ToolOutput]
    context: str | None
    """The parameter that takes the Context."""
    timeout: float | None
    """Seconds; None for the site's."""
    scalar: type | None
    """The type whose values need no conversion and no check: `scalar_members`."""

    def convert_other(self, output: object) -> object:
        """Convert an output, unless it is of the scalar type."""
        return output if type(output) is self.scalar else self.convert(output)


def plain_tool(
    definition: ToolDefinition,
    runnable: Runnable[ToolOutput],
    validator: Validator,
    scalar: type | None,
) -> PlainTool | None:
    """Return what plain calls of a tool need; None if its calls are not plain.

    The tool must have no parameters in headers.  All values of the type `scalar` fit
    its output schema.
    """
    if (
        runnable.style == "inline"
        or runnable.ours
        or definition.demands.rules
        or definition.can_be_task
        or not is_plain_value(definition.name)
    ):
        return None
    # Types are enough only if the schema demands nothing else of the values.
    types = _sufficient(runnable.types, definition.input_schema)
    return PlainTool(
        names=() if types is None else tuple(types),
        types=None if types is None else tuple(types.values()),
        fits=validator.is_valid,
        bind=runnable.bind,
        run=runnable.run,
        convert=runnable.convert,
        context=runnable.context,
        timeout=definition.timeout,
        scalar=scalar if runnable.convert is scalar_output else None,
    )


def _sufficient(
    types: Mapping[str, type] | None, schema: Mapping[str, Any]
) -> Mapping[str, type] | None:
    """Return the types if the schema demands nothing else of arguments, else None."""
    if types is None or not schema.keys() <= _ONLY_MEMBERS:
        return None
    properties = schema.get("properties", {})
    if schema.get("type") != "object" or not types.keys() >= set(
        schema.get("required", ())
    ):
        return None
    for name, kind in types.items():
        # `not` is no member of `_ONLY_TYPE`: without a schema, types are not enough.
        shape = properties.get(name, {"not": {}})
        if not shape.keys() <= _ONLY_TYPE or shape.get("type") != SCALARS[kind][0]:
            return None
    return types


_ANNOTATIONS: Final = frozenset({"title", "description", "default", "examples"})
_ONLY_TYPE: Final = _ANNOTATIONS | {"type"}
_ONLY_MEMBERS: Final = _ONLY_TYPE | {"properties", "required", "additionalProperties"}
