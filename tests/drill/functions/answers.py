"""The forms that fixtures ask for, and what they make of the answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeVar

from mcp_app import Accepted, Declined, ToolError
from mcp_app.interface.questions import ElicitAnswer

Form = TypeVar("Form")


@dataclass(frozen=True)
class Name:
    name: str


@dataclass(frozen=True)
class Colour:
    color: str


@dataclass(frozen=True)
class Confirmation:
    ok: bool


@dataclass(frozen=True)
class Situation:
    context: str


@dataclass(frozen=True)
class Reply:
    answer: str


def accepted(answer: ElicitAnswer[Form]) -> Form:
    """Return the form that the person sent; without one the call fails."""
    if isinstance(answer, Accepted):
        return answer.data
    raise ToolError(f"The question was {type(answer).__name__.lower()}.")


def described(answer: ElicitAnswer[dict[str, Any]]) -> str:
    """Say in the words of the suite what the person did."""
    if isinstance(answer, Accepted):
        return f"action=accept, content={json.dumps(answer.data)}"
    return f"action={'decline' if isinstance(answer, Declined) else 'cancel'}"
