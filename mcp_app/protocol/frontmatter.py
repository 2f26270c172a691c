"""Read and write SKILL.md: frontmatter in YAML, then Markdown (SEP-2640).

Hosts read the frontmatter by the core schema of YAML 1.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.yaml_scalars import plain_scalar

MAX_FRONTMATTER_LENGTH: Final = 65_536
MAX_DEPTH: Final = 32
"""The most levels: PyYAML takes quadratic time for deep values."""
TEXT_FIELDS: Final = ("license", "compatibility", "allowed-tools")

_FENCED: Final = re.compile(r"\ufeff?---\n(.*?)^---[\t ]*$", re.DOTALL | re.MULTILINE)
_ESCAPED: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that some readers of YAML do not accept unescaped."""
_PLAIN_KEYS: Final = frozenset({"name", "description", "metadata", *TEXT_FIELDS})
_NUMBER: Final = re.compile(
    r"[-+]?(\.(inf|Inf|INF)|(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)"
    r"|\.(nan|NaN|NAN)|0o[0-7]+|0x[0-9a-fA-F]+"
)


def text_of(content: bytes) -> str | None:
    """Return a file as text, None if it is not text in UTF-8."""
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None


def render_skill_file(frontmatter: JsonObject, body: str) -> bytes:
    """Return a SKILL.md with frontmatter that all readers of YAML read alike."""
    lines = [
        f"{key if key in _PLAIN_KEYS else _json(key)}: {_json(value)}\n"
        for key, value in frontmatter.items()
    ]
    return f"---\n{''.join(lines)}---\n\n{body}".encode()


def _json(value: object) -> str:
    text = jsonrpc.write(value).decode()
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def frontmatter_text(content: bytes) -> str:
    """Return the YAML of a SKILL.md; ValueError if it has none."""
    fenced = _FENCED.match((text_of(content) or "").replace("\r\n", "\n"))
    if fenced is None:
        message = "Write a line ---, then name and description, then a line ---."
        raise ValueError(f"Line 1: SKILL.md has no frontmatter in UTF-8. {message}")
    return fenced[1]


def read_frontmatter(content: bytes) -> JsonObject:
    """Return the frontmatter of a SKILL.md, before the rules for skills are checked.

    Raises ValueError with the line and the remedy; ImportError without PyYAML.
    """
    import yaml  # noqa: PLC0415 - an extra

    text = frontmatter_text(content)
    if len(text) > MAX_FRONTMATTER_LENGTH:
        raise _line_error(None, f"Write at most {MAX_FRONTMATTER_LENGTH} characters.")
    try:
        # Skip the events that start the stream and the document.
        events = islice(yaml.parse(f"---\n{text}", yaml.SafeLoader), 2, None)
        value = _read_node(next(events), events)
        # After the end of the document, the stream ends if it has no other document.
        _, is_one = next(events), type(next(events)).__name__ == "StreamEndEvent"
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or error
        message = f"{problem}. Put texts with special characters in quotes."
        raise _line_error(getattr(error, "problem_mark", None), message) from None
    if not isinstance(value, dict) or not is_one:
        raise _line_error(None, "Write the fields here as “name: value”.")
    try:
        has_nul = jsonrpc.holds_nul(jsonrpc.write(value))
    except jsonrpc.UnserializableValue as error:
        raise _line_error(None, f"{error} Leave it out.") from None
    if has_nul:
        raise _line_error(None, "A value has the character NUL. Leave it out.")
    return value


def _read_node(event: Any, events: Iterator[Any], depth: int = 1) -> Any:
    """Return the value that begins with an event of PyYAML's parser."""
    kind = type(event).__name__
    if depth > MAX_DEPTH:
        raise _line_error(event.start_mark, f"Write at most {MAX_DEPTH} levels.")
    if kind == "AliasEvent" or event.anchor or event.tag:
        message = "Anchors, aliases and tags are not allowed. Write the value out."
        raise _line_error(event.start_mark, message)
    if kind == "ScalarEvent":
        # `implicit[0]` is true for a plain scalar: one without quotes.
        return _read_scalar(event) if event.implicit[0] else event.value
    items: list[Any] = []
    fields: JsonObject = {}
    while not type(event := next(events)).__name__.endswith("EndEvent"):
        value = _read_node(event, events, depth + 1)
        if kind == "SequenceStartEvent":
            items.append(value)
        elif not isinstance(value, str) or value in fields:
            message = f"The name {value!r:.40} must be a text, and be there only once."
            raise _line_error(event.start_mark, message)
        else:
            fields[value] = _read_node(next(events), events, depth + 1)
    return items if kind == "SequenceStartEvent" else fields


def _read_scalar(event: Any) -> object:
    value = plain_scalar(event.value)
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        message = f"{value:.40} is no number that all programs read. Put it in quotes."
        raise _line_error(event.start_mark, message)
    return value


def _line_error(mark: Any, problem: str) -> ValueError:
    # A mark counts lines from 0.  Without one, name line 2, the first after `---`.
    return ValueError(f"Line {2 if mark is None else mark.line + 1}: {problem}")
