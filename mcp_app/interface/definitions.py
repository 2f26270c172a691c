"""What a client can see of a server: tools, resources, templates and prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, cast

from mcp_app.interface.rules import (
    NO_REQUIREMENTS,
    AccessRequirements,
    argument_problem,
    suggestions_problem,
    text_problem,
    variable_problem,
    visible,
)
from mcp_app.protocol.content import Annotations, Icon, Role, Theme
from mcp_app.protocol.json_types import JsonObject

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

EMPTY_SCHEMA: JsonObject = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHints:
    """The protocol's tool annotations; None leaves the protocol's default.

    Read-only and idempotent calls are not logged and may be repeated.
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
        hints = {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }
        return {name: value for name, value in hints.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What all four kinds of definition have.

    Who does not meet the `demands` finds it neither listed nor usable.  `timeout` is in
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
        """Whether to use it changes nothing, as far as it says."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition(Definition):
    """A tool; the schemas are JSON Schema objects as the client gets them.

    One person may call it `calls_per_minute` times, None for the site's rate.
    """

    input_schema: Mapping[str, object] = field(default_factory=lambda: EMPTY_SCHEMA)
    output_schema: Mapping[str, object] | None = None
    hints: ToolHints = field(default_factory=ToolHints)
    calls_per_minute: int | None = None

    @property
    def only_reads(self) -> bool:
        return bool(self.hints.read_only)


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


# -- decorations -----------------------------------------------------------------------
# Icons, annotations and prompt arguments from the JSON that rows and forms hold.

_ICON = frozenset({"src", "mimeType", "sizes", "theme"})
_ANNOTATIONS = frozenset({"audience", "priority", "lastModified"})
_ARGUMENT = frozenset({"name", "title", "description", "required", "suggestions"})
_THEMES = (None, "light", "dark")
_ROLES = ("user", "assistant")


def icons_from_json(value: object) -> tuple[Icon, ...]:
    """Read a list of icons; ValueError says what is wrong."""
    if not isinstance(value, list):
        raise ValueError("The icons are not a JSON list.")
    return tuple(_read_icon(item) for item in value)


def _read_icon(value: object) -> Icon:
    icon = _checked_members(value, _ICON, "An icon")
    src, sizes, theme = icon.get("src"), icon.get("sizes"), icon.get("theme")
    if not isinstance(src, str) or not src.startswith(("https://", "data:image/")):
        raise ValueError("The src of an icon must be an https: or a data:image/ URI.")
    if sizes is not None and not _is_string_list(sizes):
        raise ValueError('The sizes of an icon must be a list such as ["48x48"].')
    if theme not in _THEMES:
        raise ValueError("The theme of an icon must be light or dark.")
    return Icon(
        src=src,
        mime_type=_text_member(icon, "mimeType", "An icon") or None,
        sizes=cast("Sequence[str] | None", sizes),
        theme=cast("Theme | None", theme),
    )


def annotations_from_json(value: object) -> Annotations:
    """Read the annotations of a resource or a block; ValueError says what is wrong."""
    members = _checked_members(value, _ANNOTATIONS, "An annotation")
    audience, priority = members.get("audience"), members.get("priority")
    modified = _text_member(members, "lastModified", "An annotation") or None
    if audience is not None and not _is_role_list(audience):
        raise ValueError('The audience must be a list of "user" and "assistant".')
    if priority is not None and not _is_fraction(priority):
        raise ValueError("The priority must be a number from 0 to 1.")
    if modified is not None:
        _check_time(modified)
    return Annotations(
        audience=cast("Sequence[Role] | None", audience),
        priority=cast("float | None", priority),
        last_modified=modified,
    )


def arguments_from_json(value: object) -> tuple[PromptArgument, ...]:
    """Read a prompt's list of arguments; ValueError says what is wrong."""
    if not isinstance(value, list):
        raise ValueError("The arguments are not a JSON list.")
    arguments = tuple(_read_argument(item) for item in value)
    for name, count in Counter(each.name for each in arguments).items():
        if count > 1:
            raise ValueError(f"The argument {name} is there more than once.")
    return arguments


def _read_argument(value: object) -> PromptArgument:
    members = _checked_members(value, _ARGUMENT, "An argument")
    name, title = (
        _text_member(members, "name", "An argument"),
        _text_member(members, "title", "A title"),
    )
    description = _text_member(members, "description", "A description")
    required = members.get("required", False)
    if not isinstance(required, bool):
        raise ValueError(f"“required” of the argument {name} must be true or false.")
    problem = (
        argument_problem(name)
        or text_problem(title)
        or text_problem(description, lines=True)
    )
    if problem:
        raise ValueError(problem)
    return PromptArgument(
        name=name,
        title=title,
        description=description,
        required=required,
        suggestions=_suggestions(members.get("suggestions", []), name),
    )


def suggestions_from_json(value: object) -> Mapping[str, tuple[str, ...]]:
    """Read what is suggested for variables; ValueError says what is wrong."""
    if not isinstance(value, dict):
        raise ValueError("The suggestions are not a JSON object.")
    for name in value:
        if problem := variable_problem(name):
            raise ValueError(problem)
    return {name: _suggestions(texts, name) for name, texts in value.items()}


def _suggestions(value: object, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not _is_string_list(value):
        raise ValueError(
            f"The suggestions for {visible(name)} must be a list of texts."
        )
    if problem := suggestions_problem(value):
        raise ValueError(f"Suggestions for {visible(name)}: {problem}")
    return tuple(value)


def _checked_members(
    value: object, known: frozenset[str], what: str
) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} must be a JSON object.")
    for name in value:
        if name not in known:
            raise ValueError(
                f"{what} has no member “{name}”; it may have: "
                f"{', '.join(sorted(known))}."
            )
    return value


def _text_member(value: Mapping[str, object], name: str, what: str) -> str:
    text = value.get(name, "")
    if not isinstance(text, str):
        raise ValueError(f"{what} needs “{name}” as a text.")
    return text


def _is_string_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_role_list(value: object) -> bool:
    return isinstance(value, list) and all(item in _ROLES for item in value)


def _is_fraction(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 <= value <= 1
    )


def _check_time(text: str) -> None:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"lastModified is “{text}”; it must be a time of ISO 8601, for example "
            "2026-01-31T12:00:00Z."
        ) from None


# -- labels ----------------------------------------------------------------------------
# Texts that people read: plain, or translated when they are shown.

Label: TypeAlias = "str | _StrPromise"
