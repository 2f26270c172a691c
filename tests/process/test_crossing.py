"""T3: 200 sessions all say id 1, at several processes, and nothing crosses.

It is the short form of `python -m tests.reliability --part security`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest

from tests.process.clusters import case_on
from tests.process.judging import kept
from tests.process.streaming import Answer
from tests.reliability.crossing import CALLS, SESSIONS, Judged, _judged, crossing
from tests.reliability.site import Site

pytestmark = pytest.mark.programs

OWN, OTHER = f"payload-{'a' * 32}", f"payload-{'b' * 32}"


@pytest.mark.parametrize(
    ("cluster", "sessions"),
    [case_on("postgresql", 40), case_on("postgresql", SESSIONS, long=True)],
    indirect=["cluster"],
)
def test_all_calls_get_what_is_theirs(served: Site, sessions: int) -> None:
    assert SESSIONS * CALLS == 2_000
    kept(crossing(served, 1, sessions), 1)


@dataclass
class _Came:
    raw: bytes
    status: int = 200
    error: Exception | None = None


@pytest.mark.parametrize(
    ("raw", "foreign", "instead"),
    [
        (OWN, False, ""),
        (f"{OWN} {OTHER}", True, ""),
        (OTHER, True, f"200  {OTHER}"),
        ("too late", False, "200  too late"),
        ("", False, "200  "),
    ],
)
def test_a_foreign_payload_is_found(raw: str, foreign: bool, instead: str) -> None:
    came = cast("Answer", _Came(raw.encode()))
    assert _judged(came, OWN) == Judged(foreign, instead)
