"""Results as each revision wants them: `resultType`, caching hints, `serverInfo`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp_app.protocol.negotiation import SERVER_INFO, SUBSCRIPTION_ID

if TYPE_CHECKING:
    from mcp_app.protocol.json_types import JsonObject
    from mcp_app.protocol.revisions import Revision


# -- meta ------------------------------------------------------------------------------
# What may stand in `_meta` (basic, "`_meta`", 2026-07-28): the names of its keys.

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
    match = _KEY.fullmatch(key)
    if match is None:
        return (
            f"{key[:80]!r} cannot be a key of _meta. Use a name of letters A-Z and"
            " a-z, digits and _ - . that begins and ends with a letter or digit,"
            " with or without a prefix such as com.example/."
        )
    second_label = (match["prefix"] or "").lower().split(".")[1:2]
    if key in _RESERVED_KEYS or not _RESERVED_LABELS.isdisjoint(second_label):
        return (
            f"The key {key[:80]!r} of _meta is reserved for the protocol: use a prefix"
            " of your own, such as com.example/."
        )
    return None


def check_meta(meta: Mapping[str, object]) -> None:
    """Raise ValueError where what we write into `_meta` has a key that is not ours."""
    if isinstance(meta, ReceivedMeta):
        return
    for problem in filter(None, map(meta_key_problem, meta)):
        raise ValueError(problem)


# -- results ---------------------------------------------------------------------------

CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "logging": {},
    "completions": {},
}
CAPABILITIES_WHOLE: Mapping[str, Mapping[str, bool]] = {
    name: {} for name in ("tools", "resources", "prompts", "completions")
}
"""What is left where no stream can be kept open."""


@dataclass(frozen=True, slots=True)
class CacheHint:
    """`ttl_ms` is in milliseconds; `public` results do not depend on the user."""

    ttl_ms: int
    public: bool

    def to_wire(self) -> JsonObject:
        return {
            "ttlMs": self.ttl_ms,
            "cacheScope": "public" if self.public else "private",
        }


def complete_result(
    result: JsonObject,
    revision: Revision,
    server_info: object,
    hint: CacheHint | None = None,
) -> JsonObject:
    """Add what the revision wants in every result, in place; return the result.

    `server_info` is JSON, or already encoded (`orjson.Fragment`).
    """
    if revision.result_type:
        result.setdefault("resultType", "complete")
    if hint is not None and revision.cache_hints:
        result.update(hint.to_wire())
    if revision.server_info_in_results:
        result["_meta"] = {**(result.get("_meta") or {}), SERVER_INFO: server_info}
    return result


def input_required(questions: JsonObject, state: str) -> JsonObject:
    """Return an `InputRequiredResult` (2026-07-28, basic/patterns/mrtr)."""
    return {
        "resultType": "input_required",
        "inputRequests": questions,
        "requestState": state,
    }


def capabilities(revision: Revision, *, streams: bool = True) -> JsonObject:
    """Return what this server can do, as that revision names it."""
    known = CAPABILITIES if streams else CAPABILITIES_WHOLE
    return revision.known_members("capabilities", known)


def subscription_meta(
    subscription: str | int, params: Mapping[str, object]
) -> JsonObject:
    """Return notification parameters marked with their `subscriptions/listen`."""
    return {**params, "_meta": {SUBSCRIPTION_ID: subscription}}
