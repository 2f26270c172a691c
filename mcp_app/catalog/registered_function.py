"""A function that code registered, as what can stand behind any definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from mcp_app.catalog.annotations import Annotation
from mcp_app.catalog.callables import MISSING, Function, inspect_function
from mcp_app.catalog.errors import RegistrationError
from mcp_app.catalog.outputs import completion, prompt_output
from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.signatures import Signature
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.results import Completion, PromptOutput, ToolOutput
from mcp_app.protocol.json_types import JsonObject

AnyDefinition = TypeVar("AnyDefinition", bound=Definition)
Output = TypeVar("Output")

_COMPLETING = ("value", "arguments")


class RegisteredFunction:
    """A function with its key and the way it wants to be run.

    The key is the function's own name where there is none.  `atomic` of None leaves
    it to the site (ATOMIC_REQUESTS); `database` runs an async function in a thread,
    where the ORM has a connection of its own.  `returns` stands in for a return
    annotation that is not there.
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
        """What the docstring says before it comes to the parameters."""
        return self.inspected.documentation.text

    def fits(self, schema: Mapping[str, Any]) -> list[str]:
        """Say why arguments that satisfy an input schema could not be passed on."""
        return self.signature.fits(schema)

    def tool_runnable(self) -> Runnable[ToolOutput]:
        """Return the function as a tool; `RegistrationError` for what it returns."""
        signature = self.signature
        run = self._runnable(signature.returns.convert, signature.bind)
        return replace(run, types=signature.types)

    def resource_runnable(self) -> Runnable[object]:
        """Return the function as a resource or a template.

        What it returns comes out as it is: `outputs.resource_output` needs the URI.
        """
        return self._runnable(_as_it_is, self.signature.bind)

    def prompt_runnable(self) -> Runnable[PromptOutput]:
        """Return the function as a prompt."""
        return self._runnable(prompt_output, self.signature.bind)

    def completion_runnable(self) -> Runnable[Completion]:
        """Return the function as a completer, bound to a value and other arguments.

        `{"value": "par", "arguments": {"country": "fr"}}` goes to the first and the
        second parameter, whatever their names; a function may do without.
        """
        parameters = self.inspected.parameters
        names = [parameter.name for parameter in parameters[: len(_COMPLETING)]]
        if any(each.required for each in parameters[len(_COMPLETING) :]):
            raise RegistrationError(
                f"{self.qualified_name} completes an argument, so it can take only"
                " the value, the other arguments and the context."
            )

        def bind(given: JsonObject) -> dict[str, object]:
            values = (given[member] for member in _COMPLETING)
            return dict(zip(names, values, strict=False))

        return self._runnable(completion, bind)

    def _runnable(
        self,
        convert: Callable[[object], Output],
        bind: Callable[[JsonObject], dict[str, object]],
    ) -> Runnable[Output]:
        return Runnable(
            run=self.inspected.run,
            style=self.style,
            bind=bind,
            convert=convert,
            context=self.inspected.context,
            atomic=self.atomic,
            database=self.database,
        )


@dataclass(frozen=True, slots=True)
class Declaration(Generic[AnyDefinition]):
    """A definition that code declares, and the function behind it."""

    definition: AnyDefinition
    function: RegisteredFunction


DeclaredTool: TypeAlias = Declaration[ToolDefinition]
DeclaredResource: TypeAlias = Declaration[ResourceDefinition]
DeclaredTemplate: TypeAlias = Declaration[ResourceTemplateDefinition]
DeclaredPrompt: TypeAlias = Declaration[PromptDefinition]


def _as_it_is(value: object) -> object:
    return value
