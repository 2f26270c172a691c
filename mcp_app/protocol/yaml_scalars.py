"""Plain scalars of YAML by the core schema of YAML 1.2: dates and “yes” are texts."""

from __future__ import annotations

import re
from math import isfinite
from typing import Final

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,40}")
_OCTAL: Final = re.compile(r"0o[0-7]{1,40}")
_HEX: Final = re.compile(r"0x[0-9a-fA-F]{1,40}")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,4})?")


def plain_scalar(text: str) -> object:
    """Return what a plain scalar stands for (YAML 1.2, section 10.3.2)."""
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    for pattern, base in ((_INTEGER, 10), (_OCTAL, 8), (_HEX, 16)):
        if pattern.fullmatch(text):
            return int(text, base)
    if _FLOAT.fullmatch(text) and isfinite(number := float(text)):
        return number
    return text
