"""The sealed state of a multi round-trip request (2026-07-28, basic/patterns/mrtr).

It is bound to principal, server, method, target and arguments, so that state which is
presented elsewhere fails like state that was altered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import InvalidParams
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.sealing import Sealer, TooLarge

FORMAT = 1
REFUSED = "The request state is not valid for this request, or has expired."


@dataclass(frozen=True, slots=True)
class AnsweredQuestions:
    """An answer of an earlier round and the digest of the question that it answers."""

    digest: str
    result: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestState:
    """The state in a retry: digests of open questions and earlier answers.

    `round_trip` names the whole conversation: `once` steps belong to it.
    """

    round_trip: str
    asked: dict[str, str] = field(default_factory=dict)
    answered: dict[str, AnsweredQuestions] = field(default_factory=dict)


def binding(
    principal: str, server: str, method: str, target: str, arguments: object
) -> bytes:
    """Return the associated data that a state is bound to."""
    digest = sha256(jsonrpc.canonical(arguments)).hexdigest()
    return jsonrpc.canonical([principal, server, method, target, digest])


class StateSealer:
    """Seals with the first key; opens with any, so that keys can be rotated."""

    def __init__(self, secrets: Sequence[str], *, age: float, size: int) -> None:
        self._sealer = Sealer(secrets, "request-state", size=size)
        self._age_ms = int(age * 1000)
        self._size = size

    def seal(self, state: RequestState, bound: bytes, now_ms: int) -> str:
        """Return an opaque string; raise ValueError if it would be too large."""
        payload = {
            "v": FORMAT,
            "r": state.round_trip,
            "e": now_ms + self._age_ms,
            "q": state.asked,
            "a": {
                key: [each.digest, each.result] for key, each in state.answered.items()
            },
        }
        try:
            return self._sealer.seal(payload, bound)
        except TooLarge as error:
            raise ValueError(
                f"The answers so far need {error.size} bytes of request state; at most"
                f" {self._size} are allowed."
            ) from None

    def open(self, text: object, bound: bytes, now_ms: int) -> RequestState:
        """Return the state; every failure is the same `InvalidParams`."""
        payload = self._sealer.open(text, bound)
        if payload is None or payload["v"] != FORMAT or payload["e"] <= now_ms:
            raise InvalidParams(REFUSED)
        return RequestState(
            round_trip=payload["r"],
            asked=payload["q"],
            answered={
                key: AnsweredQuestions(digest, result)
                for key, (digest, result) in payload["a"].items()
            },
        )
