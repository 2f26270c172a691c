"""What may stand in `_meta` (basic, "`_meta`", 2026-07-28): the names of its keys."""

from __future__ import annotations

import re
from collections.abc import Mapping

_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_KEY = re.compile(
    rf"(?:(?P<prefix>{_LABEL}(?:\.{_LABEL})*)/)?"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?"
)
_RESERVED_LABELS = frozenset({"modelcontextprotocol", "mcp"})
_RESERVED_KEYS = frozenset({"progressToken"})


class ReceivedMeta(dict[str, object]):
    """The `_meta` that came from the other side: it goes back as it came."""


def meta_key_problem(key: str) -> str | None:
    """Return a sentence where a key of `_meta` is not ours to write, else None.

    The keys of OpenTelemetry (`traceparent` and others) have no prefix and are fine.
    """
    found = _KEY.fullmatch(key)
    if found is None:
        return (
            f"{key[:80]!r} cannot be a key of _meta. Use a name of letters A-Z and"
            " a-z, digits and _ - . that begins and ends with a letter or digit,"
            " with or without a prefix such as com.example/."
        )
    if key in _RESERVED_KEYS or _is_reserved(found["prefix"]):
        return (
            f"The key {key[:80]!r} of _meta is reserved for the protocol: use a "
            "prefix of your own, such as com.example/."
        )
    return None


def check_meta(meta: Mapping[str, object]) -> None:
    """Raise ValueError where what we write into `_meta` has a key that is not ours."""
    if isinstance(meta, ReceivedMeta):
        return
    for problem in filter(None, map(meta_key_problem, meta)):
        raise ValueError(problem)


def _is_reserved(prefix: str | None) -> bool:
    second_label = (prefix or "").lower().split(".")[1:2]
    return not _RESERVED_LABELS.isdisjoint(second_label)
