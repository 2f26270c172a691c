"""What a page showed when it was opened, so that a form can tell what was touched.

The page carries a digest of each part of each field. A field has one part unless it has
a method `parts`: the address and the file of one field are compared separately.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError

from mcp_app.admin.editors.json_texts import lines_from_browser
from mcp_app.models.fields import digest

_DIGITS: Final = 16


def field_digests(field: forms.Field, value: Any) -> dict[str, str]:
    """Return the digest of each part of what a field shows or was sent."""
    return {
        part: digest(repr(content))[:_DIGITS]
        for part, content in _field_parts(field, value).items()
    }


def on_top(field: forms.Field, mine: Any, touched: set[str]) -> Any:
    """Return what was sent, with untouched parts replaced by what is saved now."""
    merge = getattr(field, "on_top", None)
    return mine if merge is None else merge(mine, touched)


def write_digests(digest_by_part: Mapping[str, str]) -> str:
    """Serialize digests for the page."""
    return json.dumps(digest_by_part)


def read_digests(text: str) -> Mapping[str, object]:
    """Parse the digests that a page sent; return {} if they are invalid."""
    try:
        digest_by_part = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return digest_by_part if isinstance(digest_by_part, dict) else {}


def _field_parts(field: forms.Field, value: Any) -> Mapping[str, object]:
    own = getattr(field, "parts", None)
    if own is not None:
        parts: Mapping[str, object] = own(value)
        return parts
    # A file is only sent if it is new, and no page can show it again.
    return (
        {} if isinstance(field, forms.FileField) else {"": _plain_value(field, value)}
    )


def _plain_value(field: forms.Field, value: Any) -> object:
    """Normalize a value, so that one shown and the same one sent are equal."""
    if isinstance(value, list | tuple):
        return sorted(map(str, value))
    try:
        read = field.to_python(value)
    except ValidationError:
        read = value
    return lines_from_browser(read) if isinstance(read, str) else read
