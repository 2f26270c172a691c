"""What a page showed when it was opened, so that a form can tell what was touched.

The page carries a digest of each part of each field.  A field has one part, or says
by `parts` which it has: a file and its address are touched one by one.
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


def digests(field: forms.Field, value: Any) -> dict[str, str]:
    """Return the digest of each part of what a field shows or was sent."""
    return {
        part: digest(repr(said))[:_DIGITS]
        for part, said in _parts(field, value).items()
    }


def on_top(field: forms.Field, mine: Any, touched: set[str]) -> Any:
    """Return what was sent with everything that was not touched as it is saved now."""
    merge = getattr(field, "on_top", None)
    return mine if merge is None else merge(mine, touched)


def written(shown: Mapping[str, str]) -> str:
    """Return digests as the text that a page carries."""
    return json.dumps(shown)


def read(text: str) -> Mapping[str, object]:
    """Read what a page carried; nothing where it is not what a page carries."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _parts(field: forms.Field, value: Any) -> Mapping[str, object]:
    own = getattr(field, "parts", None)
    if own is not None:
        parts: Mapping[str, object] = own(value)
        return parts
    # A file is sent where there is a new one, and can be put back nowhere.
    return {} if isinstance(field, forms.FileField) else {"": _plain(field, value)}


def _plain(field: forms.Field, value: Any) -> object:
    """Return the same for what is shown and for what comes back of it."""
    if isinstance(value, list | tuple):
        return sorted(map(str, value))
    try:
        read = field.to_python(value)
    except ValidationError:
        read = value
    return lines_from_browser(read) if isinstance(read, str) else read
