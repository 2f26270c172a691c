"""URI templates (RFC 6570), which are also matched with URIs, in linear time.

These forms are supported: `{var}`, `{+var}`, `{#var}`, `{/var}`, `{?a,b}` and `{&a}`,
with lists of variables.  If the values of a template could not be read from its URIs
without doubt, `parse` refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import quote, unquote_to_bytes

URI_LENGTH: Final = 4096
"""The most characters of a URI and of a template; longer ones are never read."""

_RESERVED = ":/?#[]@!$&'()*+,;="
_EXPRESSION = re.compile(r"\{([^{}]*)\}")
NAME = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
"""A variable's name; percent-encoded names are not supported."""
_ESCAPE = re.compile(r"(%[0-9A-Fa-f]{2})")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")

# For each operator: the text before the first value, and the text between values.
_OPERATORS = {"": ("", ","), "+": ("", ","), "#": ("#", ","), "/": ("/", "/")}


class TemplateError(ValueError):
    """The text is no URI template, or a template that cannot be matched."""


@dataclass(frozen=True, slots=True)
class UriTemplate:
    """A parsed template; `variables` are its names in order.

    A variable of the path is read up to the text that follows it, and is never empty.
    Variables of `{?…}` and `{&…}` may come in any order and may be missing.
    """

    text: str
    variables: tuple[str, ...]
    _path: tuple[_Part, ...]
    _pivot: int
    _query: _Query | None

    @classmethod
    def parse(cls, text: str) -> UriTemplate:
        """Return the template; raise TemplateError with a sentence for its author."""
        if len(text) > URI_LENGTH:
            raise TemplateError(
                f"The template “{text[:40]}…” has {len(text)} characters; {URI_LENGTH} "
                "are allowed."
            )
        pieces, expression = _split_query(text)
        path = tuple(_join_literals(_path_parts(pieces, text)))
        query_names = _variable_names(expression, text) if expression else []
        names = [*(variable.name for variable in _variables(path)), *query_names]
        if len(set(names)) < len(names):
            twice = min(name for name in names if names.count(name) > 1)
            raise TemplateError(f"In {text!r}, the variable {twice!r} is there twice.")
        _check_separators(path, text)
        query = None
        if expression:
            # Every second piece is text outside of braces.
            _, mark, own_query = "".join(pieces[::2]).partition("?")
            own_marks = own_query.count("&")
            query = _Query(tuple(query_names), "&" if mark else "?", own_marks)
        return cls(text, tuple(names), path, _pivot_index(path), query)

    @property
    def required_names(self) -> tuple[str, ...]:
        """The names of the path; a URI needs a value for each."""
        return tuple(variable.name for variable in _variables(self._path))

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the decoded values by name, None if the URI is not of this form.

        `{var}` never matches `/`, `?` or `#`.  No value holds NUL or bytes that are not
        UTF-8.  No value in the path has a `.` or `..` segment, and no value of `{var}`
        starts with a slash, even if it was escaped.
        """
        uri = _escape_non_ascii(uri)
        if self._query is None:
            return self._match_path(uri)
        path, pairs = self._query.divide_uri(uri)
        query_values = self._query.read_pairs(pairs)
        values = None if query_values is None else self._match_path(path)
        return None if query_values is None or values is None else values | query_values

    def _match_path(self, uri: str) -> dict[str, str] | None:
        values: dict[str, str] = {}
        unread = _match_parts(self._path[: self._pivot], uri, values, step=1)
        if unread is not None:
            # The part after the pivot is read from the end, by the same code on
            # reversed texts.
            unread = _match_parts(
                self._path[: self._pivot : -1], unread[::-1], values, step=-1
            )
        # The pivot takes all that is unread; a path without variables has no pivot.
        for variable in _variables(self._path[self._pivot : self._pivot + 1]):
            value = None if unread is None else variable.read_value(unread[::-1])
            return None if value is None else values | {variable.name: value}
        return values if unread == "" else None

    def expand(self, values: Mapping[str, str]) -> str:
        """Return the URI of these values; ValueError if one of the path is missing."""
        uri = ""
        for part in self._path:
            if isinstance(part, str):
                uri += part
            elif part.name in values:
                uri += part.write_value(values[part.name])
            else:
                raise ValueError(f"The variable {part.name!r} has no value.")
        return uri if self._query is None else uri + self._query.write_pairs(values)


@dataclass(frozen=True, slots=True)
class _Variable:
    """One value in a path; a `reserved` one may hold `/`, `?` and the like.

    Its text in a URI cannot have the characters in `excluded`.
    """

    name: str
    reserved: bool
    excluded: str

    def read_value(self, text: str) -> str | None:
        """Return the value that `text` stands for, None if it is not allowed."""
        if any(character in text for character in self.excluded):
            return None
        value = _decode_text(text)
        if not value or _leaves_its_place(value, self.reserved):
            return None
        return value

    def write_value(self, value: str) -> str:
        """Return the value with the escapes that a URI needs.

        A reserved value keeps the escapes that it has.
        """
        if not self.reserved:
            return quote(value, safe="")
        pieces = _ESCAPE.split(value)
        pieces[::2] = [quote(piece, safe=_RESERVED) for piece in pieces[::2]]
        return "".join(pieces)


_Part: TypeAlias = str | _Variable


@dataclass(frozen=True, slots=True)
class _Query:
    """`{?…}` or `{&…}` at the end: pairs in any order, each at most once.

    `mark` stands before the first pair.  If it is `&`, the template has a fixed query
    before the expression, which has `own_marks` times `&`.
    """

    names: tuple[str, ...]
    mark: str
    own_marks: int

    def divide_uri(self, uri: str) -> tuple[str, list[str]]:
        """Return the URI without the pairs of this expression, and these pairs."""
        path, mark, query = uri.partition("?")
        pairs = query.split("&") if mark else []
        if self.mark == "?":
            return path, pairs
        # No value in front holds an `&`, so counting finds where the pairs begin.
        first = self.own_marks + 1
        return f"{path}{mark}{'&'.join(pairs[:first])}", pairs[first:]

    def read_pairs(self, pairs: list[str]) -> dict[str, str] | None:
        """Return the values of the pairs, None if one is not of this query."""
        values: dict[str, str] = {}
        for pair in pairs:
            name, mark, written = pair.partition("=")
            value = None if "#" in written else _decode_text(written)
            if value is None or not mark or name not in self.names or name in values:
                return None
            values[name] = value
        return values

    def write_pairs(self, values: Mapping[str, str]) -> str:
        """Return the pairs of the names that have a value."""
        with_value = [name for name in self.names if name in values]
        pairs = [f"{name}={quote(values[name], safe='')}" for name in with_value]
        return self.mark + "&".join(pairs) if pairs else ""


def _split_query(text: str) -> tuple[list[str], str]:
    """Return the pieces before the final query expression, and its inside or "".

    Pieces alternate between text and the inside of an expression.
    """
    pieces = _EXPRESSION.split(text)
    if any("{" in piece or "}" in piece for piece in pieces[::2]):
        raise TemplateError(
            f"The template {text!r} has a brace without a matching one."
        )
    # No expression, text after the last one, or a last one that is no query.
    if len(pieces) == 1 or pieces[-1] or pieces[-2][:1] not in {"?", "&"}:
        return pieces, ""
    has_query = any("?" in literal for literal in pieces[:-2:2])
    if has_query != (pieces[-2][0] == "&"):
        raise TemplateError(
            f"In {text!r}, use {{&…}} after a '?', and {{?…}} if there is no '?'"
            " before it."
        )
    return pieces[:-2], pieces[-2]


def _path_parts(pieces: list[str], text: str) -> Iterator[_Part]:
    in_query = False
    for index, piece in enumerate(pieces):
        if index % 2 == 0:
            in_query = in_query or "?" in piece
            yield _escape_non_ascii(piece)
        else:
            yield from _expression_parts(piece, text, in_query)


def _expression_parts(piece: str, text: str, in_query: bool) -> Iterator[_Part]:
    if piece[:1] in {"?", "&"}:
        raise TemplateError(f"In {text!r} {{{piece}}} is not the end of the template.")
    operator = piece[:1] if piece[:1] in _OPERATORS else ""
    reserved = operator in {"+", "#"}
    excluded = "" if reserved else "/?#&" if in_query else "/?#"
    first, between = _OPERATORS[operator]
    for index, name in enumerate(_variable_names(piece, text)):
        yield between if index else first
        yield _Variable(name, reserved, excluded)


def _variable_names(piece: str, text: str) -> list[str]:
    """Return the variables of an expression, whose inside is `piece`."""
    names = (piece[1:] if piece[:1] in set("+#/?&") else piece).split(",")
    for name in names:
        if not NAME.fullmatch(name):
            raise TemplateError(
                f"In {text!r}, {name!r} is not a variable. A variable has letters,"
                " digits and '_', and may have one of the operators + # / ? & before"
                " it."
            )
    return names


def _join_literals(parts: Iterator[_Part]) -> Iterator[_Part]:
    """Yield the parts; neighbouring texts are joined, and empty ones left out."""
    literal = ""
    for part in parts:
        if isinstance(part, str):
            literal += part
            continue
        if literal:
            yield literal
        yield part
        literal = ""
    if literal:
        yield literal


def _variables(path: tuple[_Part, ...]) -> Iterator[_Variable]:
    return (part for part in path if isinstance(part, _Variable))


def _check_separators(path: tuple[_Part, ...], text: str) -> None:
    """Raise unless a character that no simple value holds separates two values."""
    if sum(variable.reserved for variable in _variables(path)) > 1:
        raise TemplateError(
            f"In {text!r} two variables of {{+…}} or {{#…}} could share their text in"
            " several ways. Use only one."
        )
    separator = _RESERVED  # The first variable needs no separator before it.
    for part in path:
        if isinstance(part, str):
            separator += part
        elif set(_RESERVED).isdisjoint(separator):
            raise TemplateError(
                f"In {text!r}, {part.name!r} cannot be told apart from the variable"
                " before it. Put a character such as '/', ':' or ',' between them."
            )
        else:
            separator = ""


def _pivot_index(path: tuple[_Part, ...]) -> int:
    """Return the index of the part that is matched last, when all others are matched.

    It is the reserved variable, else the last variable, else the end of the path.
    """
    pivot = len(path)
    for index, part in enumerate(path):
        if isinstance(part, _Variable):
            pivot = index
            if part.reserved:
                break
    return pivot


def _match_parts(
    parts: tuple[_Part, ...], text: str, values: dict[str, str], *, step: int
) -> str | None:
    """Return the rest of `text` after `parts`, and add their values; None: no match.

    A value ends where the text after it first occurs.  It can end only there, so
    nothing is tried twice.  `step` is -1 if `text` is reversed.
    """
    variable: _Variable | None = None
    for part in parts:
        if isinstance(part, _Variable):
            variable = part
            continue
        raw_value, literal, text = text.partition(part[::step])
        value = variable.read_value(raw_value[::step]) if variable else None
        # Without a variable before the literal, nothing may be in front of it.
        if not literal or (value is None if variable else raw_value):
            return None
        if variable and value:
            values[variable.name] = value
        variable = None
    return text


def _decode_text(text: str) -> str | None:
    if _BROKEN_ESCAPE.search(text):
        return None
    try:
        value = unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in value else value


def _leaves_its_place(value: str, reserved: bool) -> bool:
    """Whether a path made of the value could lead outside its folder."""
    segments = value.replace("\\", "/").split("/")
    return not {".", ".."}.isdisjoint(segments) or (not reserved and not segments[0])


_ASCII = "".join(map(chr, range(128)))


def _escape_non_ascii(text: str) -> str:
    """Return the text with escapes for characters that are not ASCII."""
    if text.isascii():
        return text
    return quote(text, safe=_ASCII, errors="surrogatepass")
