"""Event types that code declares: a class, its filters, and who gets the events."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, TypedDict

from django.db import DatabaseError
from django.utils.functional import Promise
from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from mcp_app.catalog.decorators import definition_problems
from mcp_app.catalog.findings import check_options, qualified_name
from mcp_app.catalog.json_schemas import json_schema, type_adapter
from mcp_app.catalog.runnable import Runnable, leave_unconverted
from mcp_app.conf import mcp_settings
from mcp_app.interface import rules
from mcp_app.interface.context import SyncContext
from mcp_app.interface.definitions import EMPTY_SCHEMA, EventDefinition
from mcp_app.interface.errors import RegistrationError
from mcp_app.interface.principal import AccessRequest
from mcp_app.interface.rules import read_requirements
from mcp_app.pools.connections import is_outage
from mcp_app.protocol import jsonrpc, schemas
from mcp_app.protocol.events import Occurred
from mcp_app.protocol.json_types import JsonObject

logger = logging.getLogger("mcp_app.events")

MAX_AUDIENCE: Final = 1_000
_UNFIT: Final = (TypeError, UnicodeDecodeError, OverflowError)
"""Errors that values without a JSON form raise, beside pydantic's own."""
_EVENT_ID: Final = re.compile("[!-~](?:[ -~]{0,253}[!-~])?")
Match: TypeAlias = Callable[[Any, AccessRequest], bool]
"""A function of the site: whether a subscriber is told of an event."""


class EventOptions(TypedDict, total=False):
    """What `mcp.event` takes beside the name; `description` replaces the docstring.

    The `filters` are names of fields.  Each is an argument by which clients choose
    events.  For any other choice there is `match`, `(event, AccessRequest) -> bool`.
    Its request has the subscriber and the arguments of `input_schema`.  With
    `own`, callers are also told of events that their own calls caused.
    """

    description: str
    meta: Mapping[str, object]
    permission: str
    groups: Iterable[str]
    rule: str | Callable[..., Any]
    tags: Iterable[str]
    position: int
    filters: Sequence[str]
    match: Match
    input_schema: JsonObject
    own: bool


def _lazy_text(value: object) -> str:
    if isinstance(value, Promise):
        return str(value)
    raise TypeError(f"a {type(value).__qualname__} cannot be written as JSON")


@dataclass(frozen=True, slots=True, eq=False)
class DeclaredEvent:
    """An event type that a class declares; `run` chooses what a subscriber is told."""

    definition: EventDefinition
    cls: type
    types: TypeAdapter[object]
    run: Runnable[Sequence[Occurred]]

    @property
    def qualified_name(self) -> str:
        return qualified_name(self.cls)

    def dump(self, event: object) -> bytes:
        """Return an event as JSON; raise ValueError if it has no such form."""
        name = self.definition.name
        try:
            # The schema below checks the value, so that a lazy text counts as a text.
            plain = self.types.dump_python(
                event, mode="json", by_alias=True, warnings=False, fallback=_lazy_text
            )
        except (PydanticSerializationError, *_UNFIT) as error:
            raise ValueError(f"This is no event {name!r}: {error}") from error
        data = jsonrpc.write(plain)
        max_size = mcp_settings.limits.event_size
        if len(data) > max_size:
            raise ValueError(
                f"The event {name!r} has {len(data):,} bytes, but"
                f' MCP["LIMITS"]["EVENT_SIZE"] allows {max_size:,}. Tell its key alone:'
                " clients read the rest with a tool."
            )
        schema = schemas.compile_schema(self.definition.payload_schema)
        for violation in schema.violations(plain, 1):
            text = f"{violation.path}: {violation.message}"
            raise ValueError(f"This is no event {name!r}: {text}")
        if self.run.context is not None:
            # If `match` could not read the event, nobody would be told of it.
            self.types.validate_json(data)
        return data


def audience_keys(to: Iterable[object]) -> list[str]:
    """Return users as keys: `to` has users or their keys.  ValueError for too many."""
    if isinstance(to, (str, bytes)):
        # A string is iterable: each character would count as the key of a user.
        raise ValueError(f"to is {to!r:.80}. It must be a list of users or their keys.")
    # Both can be imported only after the app registry is ready.
    from django.contrib.auth import get_user_model  # noqa: PLC0415
    from django.db.models import Model  # noqa: PLC0415

    users = [*to]
    for each in users:
        if isinstance(each, Model) and not isinstance(each, get_user_model()):
            raise ValueError(f"to names {each!r:.80}, which is no user.")
    keys = [str(getattr(user, "pk", user)) for user in users]
    if len(keys) > MAX_AUDIENCE:
        raise ValueError(
            f"to names {len(keys):,} users; {MAX_AUDIENCE:,} are allowed. Leave it out,"
            " and say with match who is told."
        )
    return keys


def check_event_id(event_id: str) -> None:
    """Raise ValueError if a text cannot be the id of an event."""
    if event_id and not _EVENT_ID.fullmatch(event_id):
        raise ValueError(
            f"The id of the event is {event_id!r:.80}. Webhooks send it as a header: it"
            " must be at most 255 characters of printable ASCII, without a space at an"
            " end."
        )


def declared_event(cls: type, name: str, options: EventOptions) -> DeclaredEvent:
    """Return the event type of a class; `RegistrationError` if it cannot be one."""
    owner = qualified_name(cls)
    check_options(owner, "event", EventOptions, options)
    types = type_adapter(owner, cls)
    schema = json_schema(owner, types, "serialization")
    if schema.get("type") != "object":
        raise RegistrationError(
            f"{owner}: the data of an event is an object. Use a dataclass, a TypedDict"
            " or a pydantic model."
        )
    filters = options.get("filters", ())
    if isinstance(filters, str) or not {*filters} <= schema["properties"].keys():
        fields = ", ".join(schema["properties"])
        raise RegistrationError(
            f"{owner}: filters is {filters!r}. It must be a list of fields: {fields}."
        )
    match = options.get("match")
    definition = EventDefinition(
        name=name,
        description=_description(cls, options),
        meta=options.get("meta", {}),
        demands=read_requirements(options),
        tags=frozenset(options.get("tags", ())),
        position=options.get("position", 0),
        topic=name,
        input_schema=_input_schema(owner, schema, filters, options),
        payload_schema=schema,
        own=options.get("own", False),
    )
    problem = rules.name_problem(name)
    if problems := [problem] if problem else [*definition_problems(definition)]:
        raise RegistrationError(f"{owner}: {' '.join(problems)}")
    choose = partial(_choose_by_filters, filters)
    run: Runnable[Sequence[Occurred]]
    run = Runnable(run=choose, style="inline", bind=_bind, convert=leave_unconverted)
    if match is not None:
        chooser = _MatchingChooser(name, filters, match, types)
        run = Runnable(
            run=chooser.choose,
            style="sync",
            bind=_bind,
            convert=leave_unconverted,
            context="ctx",
        )
    return DeclaredEvent(definition, cls, types, run)


def _description(cls: type, options: EventOptions) -> str:
    if "description" in options:
        return options["description"]
    # Python gives a dataclass without a docstring its signature as docstring.
    text = inspect.getdoc(cls) or ""
    return "" if text.startswith(f"{cls.__name__}(") else text


def _input_schema(
    owner: str, payload: JsonObject, filters: Sequence[str], options: EventOptions
) -> JsonObject:
    schema = options.get("input_schema")
    if schema is not None:
        if options.get("match") is None:
            raise RegistrationError(f"{owner}: nothing reads input_schema: add match.")
        try:
            schemas.check_schema(schema)
        except ValueError as error:
            raise RegistrationError(f"{owner}: input_schema: {error}") from None
        return schema
    properties = {each: _filter_schema(payload["properties"][each]) for each in filters}
    whole = {**EMPTY_SCHEMA, "properties": properties, "additionalProperties": False}
    return {**whole, "$defs": payload["$defs"]} if "$defs" in payload else whole


def _filter_schema(field: JsonObject) -> JsonObject:
    """Return the schema of a filter: a value of the field, or a list of values."""
    value = {name: each for name, each in field.items() if name != "description"}
    alternatives = [value, {"type": "array", "items": value, "minItems": 1}]
    texts = {"description": field["description"]} if "description" in field else {}
    return {**texts, "anyOf": alternatives}


# -- choosing --------------------------------------------------------------------------


def _bind(arguments: JsonObject) -> dict[str, object]:
    return {"arguments": arguments}


def _choose_by_filters(
    filters: Sequence[str],
    *,
    occurrences: Sequence[Occurred],
    arguments: Mapping[str, object],
) -> Sequence[Occurred]:
    """Return the events whose fields have the requested values."""
    wanted = {name: arguments[name] for name in filters if name in arguments}
    return [
        each
        for each in occurrences
        if all(_fits(each.data.get(name), value) for name, value in wanted.items())
    ]


def _fits(value: object, wanted: object) -> bool:
    return value in wanted if isinstance(wanted, list) else value == wanted


@dataclass(frozen=True, slots=True)
class _MatchingChooser:
    """Chooses events by a function of the site, which runs in a thread."""

    name: str
    filters: Sequence[str]
    match: Match
    types: TypeAdapter[object]

    def choose(
        self,
        *,
        ctx: SyncContext,
        occurrences: Sequence[Occurred],
        arguments: Mapping[str, object],
    ) -> Sequence[Occurred]:
        fitting = _choose_by_filters(
            self.filters, occurrences=occurrences, arguments=arguments
        )
        request = AccessRequest(
            principal=ctx.principal,
            server=ctx.server,
            user=ctx.user(),
            name=self.name,
            arguments=arguments,
        )
        return [each for each in fitting if self._is_match(each, request)]

    def _is_match(self, occurred: Occurred, request: AccessRequest) -> bool:
        """Ask the function; if it fails, the subscriber is not told of the event."""
        try:
            event = self.types.validate_json(jsonrpc.write(occurred.data))
            return self.match(event, request) is True
        except Exception as error:
            if isinstance(error, DatabaseError) and is_outage(error):
                raise
            logger.exception(
                "The match of an event type failed.",
                extra={"event": self.name, "event_id": occurred.event_id},
            )
            return False
