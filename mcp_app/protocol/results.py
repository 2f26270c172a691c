"""Results as each revision wants them: `resultType`, caching hints, `serverInfo`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp_app.protocol.negotiation import SERVER_INFO, SUBSCRIPTION_ID

if TYPE_CHECKING:
    from mcp_app.protocol.json_types import JsonObject
    from mcp_app.protocol.revisions import Revision

CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "logging": {},
    "completions": {},
}
CAPABILITIES_WHOLE: Mapping[str, Mapping[str, bool]] = {
    "tools": {},
    "resources": {},
    "prompts": {},
    "completions": {},
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


def complete(
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
        meta = result.get("_meta")
        result["_meta"] = {**(meta or {}), SERVER_INFO: server_info}
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
    return revision.keep("capabilities", known)


def subscription_meta(
    subscription: str | int, params: Mapping[str, object]
) -> JsonObject:
    """Return notification parameters marked with their `subscriptions/listen`."""
    return {**params, "_meta": {SUBSCRIPTION_ID: subscription}}
