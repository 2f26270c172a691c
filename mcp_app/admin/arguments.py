"""A prompt's arguments as lines that people write: `name* (Title): description`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from mcp_app.interface.decorations import arguments_from_json
from mcp_app.protocol import jsonrpc

_LINE = re.compile(
    r"(?P<name>[^\s*:()]+)(?P<required>\*?)"
    r"(?:\s*\((?P<title>[^()]*)\))?"
    r"(?:\s*:\s*(?P<description>.*))?"
)


class ArgumentsField(forms.CharField):
    """Lines in the form, a JSON list of arguments as the cleaned value."""

    widget = forms.Textarea({"rows": 4, "class": "vLargeTextField"})

    def prepare_value(self, value: Any) -> str:
        return lines_from_arguments(value) if isinstance(value, list) else value or ""

    def has_changed(self, initial: Any, data: Any) -> bool:
        shown = self.prepare_value(initial)
        return shown.splitlines() != str(data or "").splitlines()

    def to_python(self, value: Any) -> str:
        lines = str(super().to_python(value) or "")
        arguments = [
            _argument(line) for line in map(str.strip, lines.splitlines()) if line
        ]
        try:
            arguments_from_json(arguments)
        except ValueError as error:
            raise ValidationError(str(error)) from None
        return jsonrpc.write(arguments).decode() if arguments else ""


def lines_from_arguments(arguments: Iterable[Mapping[str, Any]]) -> str:
    """Return the lines that stand for a list of arguments."""
    return "\n".join(map(_line, arguments))


def _line(argument: Mapping[str, Any]) -> str:
    line = str(argument["name"]) + ("*" if argument.get("required") else "")
    if title := argument.get("title"):
        line += f" ({title})"
    if description := argument.get("description"):
        line += ": " + " ".join(description.splitlines())
    return line


def _argument(line: str) -> dict[str, object]:
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValidationError(
            _("“%(line)s” is not understood. Write: name* (Title): description"),
            params={"line": line},
        )
    argument: dict[str, object] = {"name": found["name"]}
    for member in ("title", "description"):
        if text := (found[member] or "").strip():
            argument[member] = text
    if found["required"]:
        argument["required"] = True
    return argument
