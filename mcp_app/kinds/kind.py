"""The base class of kinds: it checks the config of a row, and makes it runnable.

A site or a package adds a kind: a subclass of `Kind`, named in `MCP["KINDS"]`.

    class Station(Kind):
        name = "Ask the weather station"
        examples = {ToolDefinition: "What a station measures: “At the harbour”."}
        schema = {"type": "object", "required": ["station"]}

        async def call(self, definition, config, arguments):
            return await measured(config["station"], **arguments)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeAlias, TypeVar

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.catalog.callables import inspect_function
from mcp_app.catalog.findings import Finding
from mcp_app.catalog.outputs import content_output, prompt_output
from mcp_app.catalog.registry import Registry, mcp
from mcp_app.catalog.runnable import Runnable, leave_unconverted
from mcp_app.interface.definitions import (
    Definition,
    EventDefinition,
    Label,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.questions import PromptOutput, ToolOutput
from mcp_app.protocol import jsonrpc, schemas
from mcp_app.protocol.events import Occurred
from mcp_app.protocol.json_types import JsonObject

Output = TypeVar("Output")
AnyDefinition = TypeVar("AnyDefinition", bound=Definition)

logger = logging.getLogger("mcp_app.kinds")

PARAMETERS: Final = ("definition", "config", "arguments")
"""The names of the parameters of `Kind.call`, besides a context."""
Uploads: TypeAlias = Mapping[str, bytes]
"""Uploaded content by its digest."""
NO_UPLOADS: Uploads = MappingProxyType({})
Description: TypeAlias = Sequence[tuple[str, str]]
"""A config in words: pairs of a label and a text."""
OUTSIDE: Final = gettext_lazy("Reaches outside this site")
"""The label of the part of a `Description` that names the other site."""


class Effect(StrEnum):
    """What a call may change."""

    NOTHING = "nothing"
    DATABASE = "database"
    """Rows of this site: a dry run undoes that."""
    ELSEWHERE = "elsewhere"
    """Another site: nothing undoes that."""


class KindError(Exception):
    """A definition cannot be made runnable; `field` is the row's column at fault.

    `place` is the part of the config at fault: "filters.0.value".
    """

    def __init__(self, message: str, field: str = "config", place: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.place = place


class Incomplete(KindError):
    """The config is not complete yet: the row can be saved, but not published."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A sentence for the person at the form, and the column that it is about.

    If something is only missing, `incomplete` is true: the row can be saved, but not
    published.  `place` is the part of a config: "filters.0.value".
    """

    field: str
    message: str
    incomplete: bool = False
    place: str = ""

    @classmethod
    def from_error(cls, error: KindError) -> Self:
        incomplete = isinstance(error, Incomplete)
        return cls(error.field, error.message, incomplete, error.place)


class Missing(NamedTuple):
    """Why nobody can choose a kind now, and the line of code that helps, or ""."""

    reason: Label
    line: str


class Kind:
    """Something that can run behind definitions; an instance serves one registry.

    Its methods raise `KindError` for a config that it cannot use.
    """

    name: ClassVar[Label]
    """What people choose: “Answer with a text”."""
    examples: ClassVar[Mapping[type[Definition], Label]]
    """The definitions that it is for, each with an example for staff."""
    schema: ClassVar[JsonObject] = {"type": "object"}
    """The JSON Schema of its configs."""
    guarded: ClassVar[bool] = True
    """Whether staff need a further right to change the config."""
    effect: ClassVar[Effect] = Effect.DATABASE
    """Decides what staff are told before they try it, and whether a dry run exists."""
    forms: ClassVar[Mapping[type[Definition], str]] = {}
    """Dotted paths of its forms in the admin; without one, the config is JSON."""

    def __init__(self, registry: Registry = mcp) -> None:
        self.registry = registry

    def missing(self) -> Missing | None:
        """Return why it cannot be chosen now; None if it can."""
        return None

    def complete(self, definition: AnyDefinition, config: JsonObject) -> AnyDefinition:
        """Return a definition with what follows from the config.

        That may be schemas, arguments, hints and demands.  If the row has a schema or
        arguments itself, these are kept.  `config` is a copy that fits the `schema`;
        `check` may still refuse it.
        """
        return definition

    def describe(self, definition: Definition, config: JsonObject) -> Description:
        """Return what a config says, part by part, for the people who publish it.

        Several parts may have one label.  `config` is like that of `complete`.
        """
        return _json_part(config)

    def sentence(self, definition: Definition, config: JsonObject) -> str:
        """Say in one sentence what a call does; "" if the kind's name says enough."""
        return ""

    def changes_elsewhere(
        self, definition: Definition, config: JsonObject
    ) -> str | None:
        """Return what a call changes at another site: "POST https://example.com/".

        "" if the call only reads there; None if the definition's hints decide.
        """
        return None

    def check(
        self, definition: Definition, config: JsonObject, uploads: Uploads
    ) -> Iterable[str] | None:
        """Return a sentence for each problem of a config; `config` is a copy."""
        return ()

    def call(
        self, definition: Definition, config: JsonObject, arguments: JsonObject
    ) -> object:
        """Answer a request; a coroutine function, or a function that may block.

        A further parameter that is annotated with `Context` (of a coroutine function)
        or `SyncContext` gets the call's context.  The result may be any value that a
        registered function may return.
        """
        raise NotImplementedError

    def tool_runnable(
        self,
        definition: ToolDefinition,
        config: JsonObject,
        uploads: Uploads = NO_UPLOADS,
    ) -> Runnable[ToolOutput]:
        """Return what answers `tools/call`."""
        return self._call_runnable(definition, config, content_output)

    def resource_runnable(
        self,
        definition: ResourceDefinition,
        config: JsonObject,
        uploads: Uploads = NO_UPLOADS,
    ) -> Runnable[object]:
        """Return what answers `resources/read` of this URI.

        The caller knows the requested URI, and converts the result.
        """
        return self._call_runnable(definition, config, leave_unconverted)

    def template_runnable(
        self,
        definition: ResourceTemplateDefinition,
        config: JsonObject,
        uploads: Uploads = NO_UPLOADS,
    ) -> Runnable[object]:
        """Return what answers `resources/read`, given the template's variables."""
        return self._call_runnable(definition, config, leave_unconverted)

    def prompt_runnable(
        self,
        definition: PromptDefinition,
        config: JsonObject,
        uploads: Uploads = NO_UPLOADS,
    ) -> Runnable[PromptOutput]:
        """Return what answers `prompts/get`."""
        return self._call_runnable(definition, config, prompt_output)

    def event_runnable(
        self,
        definition: EventDefinition,
        config: JsonObject,
        uploads: Uploads = NO_UPLOADS,
    ) -> Runnable[Sequence[Occurred]]:
        """Return what chooses the events in the outbox that a subscriber is told.

        The runnable gets `occurrences` beside its bound arguments.  It returns some of
        them, each with the `data` to tell.
        """
        raise KindError(f"“{self.name}” has no method event_runnable.")

    def _call_runnable(
        self,
        definition: Definition,
        config: JsonObject,
        convert: Callable[[object], Output],
    ) -> Runnable[Output]:
        called = inspect_function(self.call)
        names = tuple(parameter.name for parameter in called.parameters)
        if type(self).call is Kind.call or names != PARAMETERS:
            parameters = ", ".join(("self", *PARAMETERS))
            raise KindError(f"“{self.name}” has no method call({parameters}).")
        return Runnable(
            run=partial(called.run, definition=definition),
            style=called.style,
            # Each call gets its own copy of the config.
            bind=lambda arguments: {"config": deepcopy(config), "arguments": arguments},
            convert=convert,
            context=called.context,
        )

    def definition_runnable(
        self, definition: Definition, config: JsonObject, uploads: Uploads = NO_UPLOADS
    ) -> Runnable[Any]:
        """Return the runnable for a definition of any type.

        Any exception that is no `KindError` is logged and becomes one.
        """
        makers: Mapping[type[Definition], Callable[..., Runnable[Any]]] = {
            ToolDefinition: self.tool_runnable,
            ResourceDefinition: self.resource_runnable,
            ResourceTemplateDefinition: self.template_runnable,
            PromptDefinition: self.prompt_runnable,
            EventDefinition: self.event_runnable,
        }
        try:
            for problem in self._config_errors(definition, config, uploads):
                raise problem
            return makers[type(definition)](definition, config, uploads)
        except KindError:
            raise
        except Exception as error:
            raise self._kind_error_from(error) from error

    def complete_safely(
        self, definition: AnyDefinition, config: JsonObject
    ) -> AnyDefinition:
        """Return a completed definition; any exception becomes a `KindError`.

        If the config does not fit the `schema`, the definition is not completed:
        `config_problems` reports it.
        """
        if type(definition) not in self.examples:
            return definition
        try:
            if schemas.compile_schema(self.schema).violations(config):
                return definition
            return self.complete(definition, deepcopy(config))
        except KindError:
            raise
        except Exception as error:
            raise self._kind_error_from(error) from error

    def describe_safely(
        self, definition: Definition, config: JsonObject
    ) -> Description:
        """Return what a config says; as JSON if it does not fit, or on an error."""
        described = self._say_safely(self.describe, definition, config)
        return _json_part(config) if described is None else list(described)

    def sentence_safely(self, definition: Definition, config: JsonObject) -> str:
        """Say in one sentence what a call does; "" if the config does not fit."""
        return self._say_safely(self.sentence, definition, config) or ""

    def _say_safely(
        self,
        say: Callable[[Definition, JsonObject], Output],
        definition: Definition,
        config: JsonObject,
    ) -> Output | None:
        try:
            if not schemas.compile_schema(self.schema).violations(config):
                return say(definition, deepcopy(config))
        except Exception as error:
            # Only the line that this writes into the log is needed.
            self._kind_error_from(error)
        return None

    def config_problems(
        self, definition: Definition, config: JsonObject, uploads: Uploads = NO_UPLOADS
    ) -> list[Problem]:
        """Return why a definition cannot be made runnable."""
        try:
            errors = list(self._config_errors(definition, config, uploads))
            if not errors:
                self.definition_runnable(definition, config, uploads)
        except KindError as error:
            errors = [error]
        except Exception as error:
            errors = [self._kind_error_from(error)]
        return [Problem.from_error(each) for each in errors]

    def _config_errors(
        self, definition: Definition, config: JsonObject, uploads: Uploads
    ) -> Iterator[KindError]:
        if type(definition) not in self.examples:
            sentence = f"“{self.name}” is not for this kind of definition."
            yield KindError(sentence, "kind")
            return
        violations = schemas.compile_schema(self.schema).violations(config)
        for each in violations:
            # “$.filters[0].value” becomes “filters.0.value”.
            place = each.path.lstrip("$.").replace("[", ".").replace("]", "")
            yield KindError(f"{each.path}: {each.message}", place=place)
        if not violations:
            # `check` gets a copy, so that it cannot change the published config.
            sentences = self.check(definition, deepcopy(config), uploads) or ()
            listed = [sentences] if isinstance(sentences, str) else sentences
            yield from map(KindError, listed)

    def _kind_error_from(self, error: Exception) -> KindError:
        logger.error(
            "The kind %s raised an exception.", type(self).__name__, exc_info=error
        )
        return KindError(f"“{self.name}” failed to read this: {error!r}")

    def findings(self, definition: Definition, config: JsonObject) -> list[Finding]:
        """Return what lint says of this kind's configs, beside `config_problems`."""
        return []


def _json_part(config: JsonObject) -> Description:
    return [(_("Content as JSON"), jsonrpc.pretty_text(config))] if config else []


def object_schema(*needed: str, **properties: JsonObject) -> JsonObject:
    """Return the JSON Schema of an object that has these members and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(needed),
        "additionalProperties": False,
    }


def refuse_unknown_members(config: JsonObject, *names: str) -> None:
    """Raise `KindError` if a config has members that are not among `names`."""
    for name in config:
        if name not in names:
            raise KindError(
                f"“{name}” is not allowed here. Allowed are: {', '.join(names)}."
            )
