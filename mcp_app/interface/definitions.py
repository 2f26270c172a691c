"""What clients can see of a server: tools, resources, templates, prompts, events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from mcp_app.interface.rules import (
    NO_REQUIREMENTS,
    AccessRequirements,
    argument_problem,
    suggestions_problem,
    text_problem,
    variable_problem,
    visible,
)
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.content import Annotations, Icon
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.tasks import FORBIDDEN, OPTIONAL, TaskSupport

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

EMPTY_SCHEMA: JsonObject = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHints:
    """The protocol's tool annotations; None leaves the protocol's default.

    Calls of read-only and idempotent tools may run twice: no row guards against it.
    """

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None

    @property
    def repeatable(self) -> bool:
        """Whether the call may run twice without harm."""
        return bool(self.read_only or self.idempotent)

    def to_wire(self) -> JsonObject:
        destructive = self.destructive
        if self.read_only and destructive is None:
            # This is implied, but reviewers of ChatGPT's directory want it stated.
            destructive = False
        hints = {
            "readOnlyHint": self.read_only,
            "destructiveHint": destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }
        return {name: value for name, value in hints.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """The fields of all kinds of definition.

    Callers who do not meet the `demands` cannot see or use it.  `timeout` is in
    seconds, None for the site's default.  Lists are ordered by `position`, then by
    name.
    """

    name: str
    title: str = ""
    description: str = ""
    icons: Sequence[Icon] = ()
    meta: Mapping[str, object] = field(default_factory=dict)
    demands: AccessRequirements = NO_REQUIREMENTS
    timeout: float | None = None
    tags: frozenset[str] = frozenset()
    position: int = 0

    @property
    def only_reads(self) -> bool:
        """Whether it declares that using it changes nothing."""
        return True


Approver: TypeAlias = Literal["self", "other"]
APPROVERS: tuple[Approver, ...] = ("self", "other")
"""Who agrees to a call on this site: the calling user, or another person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """Who must agree to a call before the tool runs: `by` is one of `APPROVERS`.

    `when(arguments, user)` returns False for calls that need nobody's agreement;
    without it all do.  `describe(arguments, user)` returns the sentence that is read
    first.  Both are plain functions whose changes are rolled back.  Another person who
    approves has the `permission`, too.
    """

    by: Approver
    when: Callable[[Mapping[str, Any], Any], bool] | None = None
    describe: Callable[[Mapping[str, Any], Any], str] | None = None
    permission: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition(Definition):
    """A tool; the schemas are JSON Schema objects as the client gets them.

    One person may call it `calls_per_minute` times, None for the site's rate.  The
    values of its calls are kept for some days without the parameters in
    `hidden_values`; None keeps none.

    `task` tells whether it runs in the background, `ask_first` whether a call becomes a
    task only when its function says so (`as_task`), `rerun` whether it may run again if
    its worker dies: with None if it is read-only or idempotent.

    `app` is the URI of the page that hosts show in the place of its answer, "" for
    none; with `app_only` only such a page calls it.
    """

    input_schema: Mapping[str, object] = field(default_factory=lambda: EMPTY_SCHEMA)
    output_schema: Mapping[str, object] | None = None
    hints: ToolHints = field(default_factory=ToolHints)
    calls_per_minute: int | None = None
    hidden_values: Collection[str] | None = None
    task: TaskSupport = FORBIDDEN
    ask_first: bool = False
    rerun: bool | None = None
    approval: Approval | None = None
    app: str = ""
    app_only: bool = False

    @property
    def only_reads(self) -> bool:
        return bool(self.hints.read_only)

    @property
    def default_arguments(self) -> JsonObject:
        """The values of parameters that clients leave out."""
        properties: Any = self.input_schema.get("properties")
        members = properties.items() if isinstance(properties, dict) else ()
        return {
            name: schema["default"]
            for name, schema in members
            if isinstance(schema, dict) and "default" in schema
        }

    @property
    def task_support(self) -> TaskSupport:
        """Whether calls may be tasks; a call that waits for an approval is one."""
        waits = self.task == FORBIDDEN and self.approval is not None
        return OPTIONAL if waits else self.task

    @property
    def can_be_task(self) -> bool:
        return self.task_support != FORBIDDEN

    @property
    def may_rerun(self) -> bool:
        """Whether a task of it runs again after the death of its worker."""
        return self.hints.repeatable if self.rerun is None else self.rerun


@dataclass(frozen=True, slots=True, kw_only=True)
class OurTool(ToolDefinition):
    """A tool of this package: rights are checked for what it finds or fetches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadableDefinition(Definition):
    """`ttl_ms` and `public` are the caching hints of `resources/read`."""

    mime_type: str = ""
    annotations: Annotations | None = None
    ttl_ms: int = 0
    public: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceDefinition(_ReadableDefinition):
    """A resource with a fixed URI; `size` is in bytes where it is known."""

    uri: str
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceTemplateDefinition(_ReadableDefinition):
    """Resources whose URIs match a template of RFC 6570.

    Lists never have the `suggestions` for its variables, by name: a client gets those
    that fit what was typed.
    """

    uri_template: str
    suggestions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptArgument:
    """A named string that a prompt is filled with.

    Lists never have the `suggestions`: a client gets those that fit what was typed.
    """

    name: str
    title: str = ""
    description: str = ""
    required: bool = False
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptDefinition(Definition):
    """A prompt and the arguments that fill it."""

    arguments: Sequence[PromptArgument] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDefinition(Definition):
    """A type of events; the schemas are those of a subscription and of what is told.

    Its occurrences stand in the outbox under the `topic`.  With `own` callers are told
    of what their own calls did, too.
    """

    topic: str = ""
    input_schema: Mapping[str, object] = field(default_factory=lambda: EMPTY_SCHEMA)
    payload_schema: Mapping[str, object] = field(default_factory=lambda: EMPTY_SCHEMA)
    own: bool = False


# -- decorations -----------------------------------------------------------------------
# Icons, annotations and prompt arguments from the JSON that rows and forms hold.


@cache
def _members_reader(kind: Any) -> TypeAdapter[list[Any]]:
    # Pydantic gives this config to a dataclass without one only inside a list.
    config = ConfigDict(strict=True, extra="forbid", alias_generator=to_camel)
    return TypeAdapter(list[kind], config=config)


def _read_members(kind: Any, noun: str, value: object, depth: int = 0) -> list[Any]:
    """Read a list of dataclasses; paths in errors lack their first `depth` steps."""
    if not isinstance(value, list):
        raise ValueError(f"The {noun}s are not a JSON list.")
    try:
        # From JSON, strict mode also reads lists as tuples, and objects as dataclasses.
        return _members_reader(kind).validate_json(jsonrpc.write(value))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
    names = ", ".join(sorted(map(to_camel, kind.__dataclass_fields__)))
    rule = problem["msg"].replace("Input should be", "it must be")
    match problem["type"]:
        case "unexpected_keyword_argument":
            name = visible(str(problem["loc"][-1]))
            sentence = f"An {noun} has no member “{name}”; it may have: {names}."
        case "value_error":
            sentence = rule.removeprefix("Value error, ")
        case "dataclass_type":
            sentence = f"An {noun} must be a JSON object, not {problem['input']!r:.80}."
        case "missing":
            sentence = f"An {noun} needs “{problem['loc'][-1]}”."
        case _:
            path = jsonrpc.path_text(problem["loc"][depth:])
            sentence = f"{path} of the {noun}s is {problem['input']!r:.80}: {rule}."
    raise ValueError(sentence)


def icons_from_json(value: object) -> tuple[Icon, ...]:
    """Read a list of icons; ValueError says what is wrong."""
    icons: list[Icon] = _read_members(Icon, "icon", value)
    return tuple(replace(icon, mime_type=icon.mime_type or None) for icon in icons)


def annotations_from_json(value: object) -> Annotations:
    """Read the annotations of a resource or a block; ValueError says what is wrong."""
    parsed: Annotations
    (parsed,) = _read_members(Annotations, "annotation", [value], depth=1)
    if parsed.priority is not None and not 0 <= parsed.priority <= 1:
        raise ValueError(
            f"The priority is {parsed.priority}; it must be a number from 0 to 1."
        )
    modified = parsed.last_modified or None
    try:
        # If there is no time, any right one is checked in its place.
        datetime.fromisoformat(modified or "2026-01-31")
    except ValueError:
        raise ValueError(
            f"lastModified is “{modified}”; it must be a time of ISO 8601, for example "
            "2026-01-31T12:00:00Z."
        ) from None
    return replace(parsed, last_modified=modified)


def arguments_from_json(value: object) -> tuple[PromptArgument, ...]:
    """Read a prompt's list of arguments; ValueError says what is wrong."""
    arguments: list[PromptArgument] = _read_members(PromptArgument, "argument", value)
    for argument in arguments:
        problem = (
            argument_problem(argument.name)
            or text_problem(argument.title)
            or text_problem(argument.description, lines=True)
        )
        if problem:
            raise ValueError(problem)
        _check_suggestions(argument.name, argument.suggestions)
    for name, count in Counter(argument.name for argument in arguments).items():
        if count > 1:
            raise ValueError(f"The argument {name} is there more than once.")
    return tuple(arguments)


def suggestions_from_json(value: object) -> Mapping[str, tuple[str, ...]]:
    """Read what is suggested for variables; ValueError says what is wrong."""
    if not isinstance(value, dict):
        raise ValueError("The suggestions are not a JSON object.")
    for name in value:
        if problem := variable_problem(name):
            raise ValueError(problem)
    for name, texts in value.items():
        if not isinstance(texts, list) or not all(isinstance(t, str) for t in texts):
            raise ValueError(f"The suggestions for {name} must be a list of texts.")
        _check_suggestions(name, texts)
    return {name: tuple(texts) for name, texts in value.items()}


def _check_suggestions(name: str, texts: Sequence[str]) -> None:
    if problem := suggestions_problem(texts):
        raise ValueError(f"Suggestions for {name}: {problem}")


# -- labels ----------------------------------------------------------------------------
# Texts that people read: plain, or translated when they are shown.

Label: TypeAlias = "str | _StrPromise"
