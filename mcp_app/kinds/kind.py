"""What every kind can do: check what a row says, and make it runnable."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self, TypeAlias

from mcp_app.catalog.findings import Finding
from mcp_app.catalog.runnable import Runnable
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.results import PromptOutput, ToolOutput
from mcp_app.protocol.json_types import JsonObject

Uploads: TypeAlias = Mapping[str, bytes]
"""Uploaded content by its digest."""
NO_UPLOADS: Uploads = MappingProxyType({})


class KindError(Exception):
    """A definition cannot be made runnable; `field` is the row's column at fault."""

    def __init__(self, message: str, field: str = "config") -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class Incomplete(KindError):
    """Nothing stands behind the definition yet: it can be saved, not published."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A sentence for the person at the form, and the column that it is about.

    Where something is only missing, `incomplete` is true: that holds up publishing.
    """

    field: str
    message: str
    incomplete: bool = False

    @classmethod
    def of(cls, error: KindError) -> Self:
        return cls(error.field, error.message, isinstance(error, Incomplete))


class Kind(ABC):
    """Makes runnables of definitions; each method raises `KindError`.

    What a resource's runnable returns is converted by its caller, who knows the
    requested URI.
    """

    @abstractmethod
    def tool(
        self,
        definition: ToolDefinition,
        config: JsonObject,
        uploads: Uploads = NO_UPLOADS,
    ) -> Runnable[ToolOutput]:
        """Return what answers `tools/call`."""

    @abstractmethod
    def resource(
        self,
        definition: ResourceDefinition,
        config: JsonObject,
        uploads: Uploads = NO_UPLOADS,
    ) -> Runnable[object]:
        """Return what answers `resources/read` of this URI."""

    @abstractmethod
    def template(
        self,
        definition: ResourceTemplateDefinition,
        config: JsonObject,
        uploads: Uploads = NO_UPLOADS,
    ) -> Runnable[object]:
        """Return what answers `resources/read`, given the template's variables."""

    @abstractmethod
    def prompt(
        self,
        definition: PromptDefinition,
        config: JsonObject,
        uploads: Uploads = NO_UPLOADS,
    ) -> Runnable[PromptOutput]:
        """Return what answers `prompts/get`."""

    def runnable(
        self, definition: Definition, config: JsonObject, uploads: Uploads = NO_UPLOADS
    ) -> Runnable[Any]:
        """Return what runs behind a definition, whatever it is."""
        makers: Mapping[type[Definition], Callable[..., Runnable[Any]]] = {
            ToolDefinition: self.tool,
            ResourceDefinition: self.resource,
            ResourceTemplateDefinition: self.template,
            PromptDefinition: self.prompt,
        }
        return makers[type(definition)](definition, config, uploads)

    def problems(
        self, definition: Definition, config: JsonObject, uploads: Uploads = NO_UPLOADS
    ) -> list[Problem]:
        """Say why a definition cannot be made runnable."""
        try:
            self.runnable(definition, config, uploads)
        except KindError as error:
            return [Problem.of(error)]
        return []

    def findings(self, definition: Definition, config: JsonObject) -> list[Finding]:
        """Return what lint says of this kind's configs, beside `problems`."""
        return []


def only(config: JsonObject, *known: str) -> None:
    """Raise `KindError` where a config has members that mean nothing here."""
    for name in config:
        if name not in known:
            raise KindError(
                f"“{name}” means nothing here; there can be: {', '.join(known)}."
            )
