"""Reads an OpenAPI document from JSON or from the events of YAML.

No reference is resolved, and nothing is fetched.  YAML is read without PyYAML's
constructors, which recurse, and with the scalars of YAML 1.2: no dates and no “yes”.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import orjson
from django.utils.translation import gettext as _

from mcp_app.conf import MIB
from mcp_app.egress.sites import Site
from mcp_app.interface.errors import with_remedy
from mcp_app.kinds.http.config import BRACKETS, COMMAS, MAX_PAIRS, PIPES, REPEAT, SPACES
from mcp_app.kinds.placeholders import only_name
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.yaml_scalars import plain_scalar

# -- offer -----------------------------------------------------------------------------
# An operation of a document that can become a tool, in the form that a row keeps.


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """An operation, or a tool of another server; with a `bar` it cannot become a tool.

    `key` is the method and the path of the operation, or the name of the tool; a key
    that is too long is cut and ends with “…”.  `remarks` say what is left out.
    """

    key: str
    name: str
    summary: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    input_schema: JsonObject = field(default_factory=dict)
    config: JsonObject = field(default_factory=dict)
    output_schema: JsonObject = field(default_factory=dict)
    kind: str = "http"
    hints: Mapping[str, bool] = field(default_factory=dict)
    """The hints of its server about effects, by the columns of a tool."""
    remarks: tuple[str, ...] = ()
    bar: str = ""

    @property
    def only_reads(self) -> bool:
        return self.hints.get("read_only", self.method == "GET")

    @property
    def method(self) -> str:
        return self.key.partition(" ")[0]

    @property
    def path(self) -> str:
        return self.key.partition(" ")[2]

    @property
    def pair_names(self) -> Sequence[str]:
        """Names of parameters of its address and headers; "" if the value is fixed."""
        pairs = (*self.config.get("query", ()), *self.config.get("headers", ()))
        return [only_name(pair["value"]) for pair in pairs]

    @property
    def choices(self) -> Sequence[str]:
        """The optional parameters of `pair_names`."""
        required = self.input_schema.get("required", ())
        return [name for name in self.pair_names if name and name not in required]

    def with_parameters(self, chosen: Collection[str] | None = None) -> Offer:
        """Return the offer with its required and the chosen optional parameters.

        If `chosen` is None, the first `choices` that fit into `MAX_PAIRS` are chosen.
        """
        remarks, choices, limit = self.remarks, self.choices, MAX_PAIRS
        if chosen is None:
            # Required and fixed parameters take a part of the limit.
            others = len(self.pair_names) - len(choices)
            chosen = choices[: max(0, limit - others)]
            if names := ", ".join(choices[len(chosen) :]):
                message = _(
                    "%(names)s are left out: it has more than %(most)d parameters"
                )
                remarks += (message % {"names": names, "most": limit},)
        rest = {*choices}.difference(map(argument_name, chosen))
        config, properties = dict(self.config), self.input_schema.get("properties", {})
        for part in config.keys() & {"query", "headers"}:
            pairs = config[part]
            config[part] = [e for e in pairs if only_name(e["value"]) not in rest]
        members = {name: each for name, each in properties.items() if name not in rest}
        schema = {**self.input_schema, "properties": members}
        return replace(self, input_schema=schema, config=config, remarks=remarks)

    def to_json(self) -> JsonObject:
        """Return the offer in the form that a row keeps."""
        members = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in members.items() if value}

    @classmethod
    def from_json(cls, value: JsonObject) -> Offer:
        lists = {name: tuple(value.get(name, ())) for name in ("tags", "remarks")}
        return cls(**{"name": "", **value, **lists})


# -- names -----------------------------------------------------------------------------
# Unique names of tools and arguments, made from the words of a document.

MAX_NAME_LENGTH: Final = 64
_READ: Final = 500
"""Characters of a text that are read for a name: one regex takes quadratic time."""
_CODED: Final = 10
"""Characters that are written as codes in a name without ASCII letters or digits."""
_MAX_SUFFIX_LENGTH: Final = len("_99999")


def snake_case(text: str) -> str:
    """Return an operationId as the name of a tool: `listPets` is `list_pets`."""
    parts = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text[:_READ])
    parts = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", parts)
    return re.sub(r"[^A-Za-z0-9]+", "_", parts).strip("_").lower()[:MAX_NAME_LENGTH]


def argument_name(text: str) -> str:
    """Return a name that a placeholder can have; `用户` is `u7528_u6237`."""
    if not re.search("[A-Za-z0-9]", text):
        text = "_".join(f"u{ord(each):x}" for each in text[:_CODED])
    name = re.sub(r"[^A-Za-z0-9_-]", "_", text)
    return name if re.match(r"[A-Za-z_]", name) else f"_{name}"


@dataclass
class Names:
    """Gives unique names: a name that is taken gets a number at its end."""

    names: set[str] = field(default_factory=set)
    _last: dict[str, int] = field(default_factory=dict)
    """The last number given to names with the same beginning: the next one follows."""

    def reserve_name(self, base: str) -> str:
        """Return the name, with a number if it is taken, and reserve it."""
        name, stem = base, base[: MAX_NAME_LENGTH - _MAX_SUFFIX_LENGTH]
        while name in self.names:
            self._last[stem] = self._last.get(stem, 1) + 1
            end = f"_{self._last[stem]}"
            name = base[: MAX_NAME_LENGTH - len(end)] + end
        self.names.add(name)
        return name


# -- addresses -------------------------------------------------------------------------
# Addresses in documents: paths with a query behind them, styles of values.

_STYLES: Final[Mapping[str, tuple[str, str]]] = {
    "form": (REPEAT, COMMAS),
    "spaceDelimited": (REPEAT, SPACES),
    "pipeDelimited": (REPEAT, PIPES),
    "deepObject": (BRACKETS, BRACKETS),
}
"""The style of a pair with and without `explode`."""


def split_path(path: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a path, and the pairs of a query that a document writes behind it.

    The part after a # only tells operations apart; it is never sent (RFC 3986, 3.5).
    """
    path, _, query = path.partition("#")[0].partition("?")
    return path, parse_qsl(query, keep_blank_values=True)


def is_same_server(url: str, site: Site, *, any_host: bool) -> bool:
    """Whether calls go to this URL, on any host if `any_host`; True if unknown."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return True
    path = parts.path.rstrip("/")
    if "{" in url or (any_host and not path):
        return True
    return path == site.prefix and (any_host or parts.hostname in (None, site.host))


def pair_style_of(parameter: JsonObject) -> str | None:
    """Return the style in which a pair writes lists and objects; None if unknown."""
    style = parameter.get("style", "form")
    if not isinstance(style, str) or style not in _STYLES:
        return None
    exploded, together = _STYLES[style]
    return exploded if parameter.get("explode", style == "form") else together


# -- reading ---------------------------------------------------------------------------

MOST_YAML: Final = 4 * MIB
MOST_NODES: Final = 2_000_000
DEEPEST: Final = 64
MAX_DIRECTIVES: Final = 10
"""Lines before a YAML document; its parser takes quadratic time for them."""
TEXT_BYTES_PER_VALUE: Final = 16
"""So many bytes of a text count as one more value, because aliases repeat texts."""
VERSIONS: Final = re.compile(r"3\.[012](\..*)?")


class DocumentError(ValueError):
    """A document that cannot be read at all; the message is for staff."""


def read_document(content: bytes, max_bytes: int) -> JsonObject:
    """Return a document of OpenAPI 3.0, 3.1 or 3.2; `max_bytes` is its limit.

    Raises `DocumentError` if the content is no such document.
    """
    if len(content) > max_bytes:
        raise DocumentError(
            _("The document has %(size).1f MiB; at most %(most).1f are allowed.")
            % {"size": len(content) / MIB, "most": max_bytes / MIB}
        )
    value = _parse_content(content)
    if not isinstance(value, dict):
        raise DocumentError(_("This is no OpenAPI document: it is no object."))
    if "swagger" in value:
        raise DocumentError(
            _("This is Swagger %(version)s. Export it as OpenAPI 3.0 or newer.")
            % {"version": str(value["swagger"])[:20]}
        )
    version = value.get("openapi")
    if not isinstance(version, str) or not VERSIONS.fullmatch(version):
        raise DocumentError(
            _("This is no OpenAPI document of 3.0, 3.1 or 3.2: “openapi” is %(given)s.")
            % {"given": repr(version)[:40]}
        )
    if not isinstance(value.get("paths", {}), dict):
        raise DocumentError(_("The “paths” of the document are no object."))
    return value


def _parse_content(content: bytes) -> object:
    text = content.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith((b"{", b"[")):
        return read_yaml(content)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        message = _unreadable_message("JSON", error)
    if text.startswith(b"{"):
        # A YAML document may also begin with a brace.
        with suppress(DocumentError):
            return read_yaml(content)
    raise DocumentError(message)


def _unreadable_message(what: str, error: Exception) -> str:
    return _("The document is no %(what)s that can be read: %(error)s.") % {
        "what": what,
        "error": str(error).rstrip(".")[:300],
    }


def read_yaml(content: bytes) -> object:
    """Return the first document of a YAML stream; raise `DocumentError`."""
    if len(content) > MOST_YAML:
        raise DocumentError(
            _(
                "The document is YAML of %(size).1f MiB; at most %(most)d are allowed."
                " Give it as JSON."
            )
            % {"size": len(content) / MIB, "most": MOST_YAML // MIB}
        )
    _check_directives(content)
    try:
        import yaml  # noqa: PLC0415 - an extra
    except ImportError as error:
        message = "Documents in YAML need a package that is not installed"
        raise DocumentError(with_remedy(message, error)) from error
    loader: Any = getattr(yaml, "CLoader", yaml.Loader)
    builder = _Builder()
    try:
        for event in yaml.parse(content, Loader=loader):
            if handler := _HANDLERS.get(type(event).__name__):
                handler(builder, event)
            if builder.is_complete:
                break
    except (yaml.YAMLError, UnicodeError) as error:
        raise DocumentError(_unreadable_message("YAML", error)) from None
    return builder.value


def _check_directives(content: bytes) -> None:
    # YAML is UTF-8 or UTF-16; a mark at the beginning says that it is UTF-16.
    is_utf16 = content.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    text = content.decode("utf-16" if is_utf16 else "utf-8-sig", "replace")
    count = 0
    for line in text.splitlines():
        content_line = line.lstrip(" \t\ufeff")
        if line.startswith("%"):
            count += 1
        elif content_line and not content_line.startswith("#"):
            return
        if count > MAX_DIRECTIVES:
            message = _("The document has more than %d lines that begin with “%%”.")
            raise DocumentError(message % MAX_DIRECTIVES)


@dataclass
class _Open:
    """A container that is being read; `key` is that of its next value, None before."""

    value: Any
    anchor: str | None
    size: int = 1
    key: str | None = None


@dataclass
class _Builder:
    """Builds a value from the events of a YAML parser, without recursion."""

    value: object = None
    is_complete: bool = False
    _stack: list[_Open] = field(default_factory=list)
    _anchors: dict[str, tuple[object, int]] = field(default_factory=dict)

    def begin_container(self, value: Any, event: Any) -> None:
        if len(self._stack) >= DEEPEST:
            message = _("The document is nested deeper than %d levels.")
            raise DocumentError(message % DEEPEST)
        self._stack.append(_Open(value, event.anchor))

    def end_container(self, _event: Any) -> None:
        done = self._stack.pop()
        self._store_value(done.value, done.size, done.anchor)

    def add_scalar(self, event: Any) -> None:
        top = self._stack[-1] if self._stack else None
        is_key = top is not None and isinstance(top.value, dict) and top.key is None
        # Only a scalar without style is converted: "" (C parser), None (Python parser).
        if is_key or not (event.implicit[0] and not event.style):
            value: object = event.value
        else:
            value = plain_scalar(event.value)
        # This raises UnicodeError for a lone surrogate.
        size = 1 + len(event.value.encode()) // TEXT_BYTES_PER_VALUE
        self._store_value(value, size, event.anchor)

    def resolve_alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            message = _("The document has an alias *%s of nothing, or of itself.")
            raise DocumentError(message % event.anchor[:40])
        value, size = self._anchors[event.anchor]
        self._store_value(value, size, None)

    def _store_value(self, value: object, size: int, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = value, size
        if not self._stack:
            self.value, self.is_complete = value, True
            return
        above = self._stack[-1]
        above.size += size
        if above.size > MOST_NODES:
            raise DocumentError(
                _("The document has more than %d values, aliases counted each time.")
                % MOST_NODES
            )
        if isinstance(above.value, list):
            above.value.append(value)
        elif above.key is not None:
            above.value[above.key] = value
            above.key = None
        elif isinstance(value, str):
            above.key = value
        else:
            raise DocumentError(_("The document has a key that is no text."))


_HANDLERS: Final[Mapping[str, Callable[[_Builder, Any], None]]] = {
    "MappingStartEvent": lambda builder, event: builder.begin_container({}, event),
    "SequenceStartEvent": lambda builder, event: builder.begin_container([], event),
    "MappingEndEvent": _Builder.end_container,
    "SequenceEndEvent": _Builder.end_container,
    "ScalarEvent": _Builder.add_scalar,
    "AliasEvent": _Builder.resolve_alias,
}
