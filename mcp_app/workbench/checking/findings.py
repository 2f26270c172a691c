"""What a check says: one finding each, with the line to change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum

from mcp_app.protocol.json_types import JsonObject


class Grade(StrEnum):
    """How a finding is to be taken."""

    GOOD = "good"
    ADVICE = "advice"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is so, why it matters, and the line to change; `rule` names what was
    looked at."""

    rule: str
    grade: Grade
    what: str
    why: str = ""
    line: str = ""

    def as_json(self) -> JsonObject:
        """Return the object that `mcp_check --json` prints for it."""
        return asdict(self)


def has_problem(findings: Iterable[Finding]) -> bool:
    """Whether one of them is a problem."""
    return any(each.grade is Grade.PROBLEM for each in findings)
