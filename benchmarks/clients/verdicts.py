"""Reads what a driver reports: which facets are right, and what stands for the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from benchmarks.clients.catalog import CALLS, OFFERS, REFUSALS, TRANSPORTS, Client
from benchmarks.clients.site import SAID, TOOLS

Report: TypeAlias = Mapping[str, Any]
Reports: TypeAlias = Mapping[str, Report]
"""By the probe: a transport, what was shown of a token, or "restart"."""

RIGHT: Final = "+"
WRONG: Final = "-"
UNTRIED: Final = "."
SUM: Final = "42"
SILENCE: Final = "no answer after"
"""How a driver says that the client said nothing."""
LONGEST: Final = 90
"""Characters of a client's own sentence."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a client.

    `cells` has a text by facet: `+`, `-` for a fault of the server, `.` for what was
    not tried, else what the client itself makes of it.  `faults` has a sentence for
    each `-`.
    """

    client: Client
    cells: Mapping[str, str] = field(default_factory=dict)
    faults: Sequence[str] = ()
    not_installed: str = ""


def verdict(client: Client, reports: Reports) -> Verdict:
    """Judge what the drivers of a client have reported."""
    found = {
        **{
            each: _connection(client, reports.get(each, {}))
            for each in client.transports
        },
        **_lists(reports),
        **_calls(client, reports),
        **_tokens(reports),
        **_signs_in(reports),
        **_restart(reports),
    }
    cells: dict[str, str] = {}
    faults: list[str] = []
    for facet, (is_right, seen) in found.items():
        if facet in client.lacks:
            continue
        cells[facet] = _cell(client, facet, is_right=is_right, seen=seen)
        if cells[facet] == WRONG:
            faults.append(f"{client.title}, {facet}: {seen or 'nothing was seen'}")
    return Verdict(client, {**cells, "revision": _revision(reports)}, faults)


Finding: TypeAlias = tuple[bool, str]
"""Whether it is right, and what was seen if not."""


def _cell(client: Client, facet: str, *, is_right: bool, seen: str) -> str:
    if is_right:
        return RIGHT
    if facet not in client.limits:
        return WRONG
    return sentence(seen) if facet in REFUSALS else "no"


def _connection(client: Client, report: Report) -> Finding:
    if not report or "error" in report:
        return False, str(report.get("error", ""))
    can_call = "tools" not in client.lacks
    return not can_call or SUM in report.get("added", ""), report.get("added", "")


def _revision(reports: Reports) -> str:
    told = [report.get("revision", "") for report in reports.values()]
    return max(told, default="") or UNTRIED


def _lists(reports: Reports) -> dict[str, Finding]:
    """Judge the lists: one in one page, and those that have several."""
    asked = [reports[each] for each in TRANSPORTS if each in reports]
    paged = [each["tools"] for each in asked if "tools" in each]
    whole = reports.get("right", {}).get("tools", max(paged, default=0))
    return {
        "tools": (whole == TOOLS, f"{whole} tools"),
        "pages": (bool(paged) and min(paged) == TOOLS, f"{min(paged, default=0)}"),
    }


def _calls(client: Client, reports: Reports) -> dict[str, Finding]:
    """Judge what calls returned; each must be right on each transport."""
    seen = [reports.get(each, {}).get("seen", {}) for each in client.transports]
    found: dict[str, Finding] = {}
    for facet in (*CALLS, *OFFERS):
        wrong = [each.get(facet) for each in seen if each.get(facet) is not True]
        found[facet] = (not wrong, str(wrong[0]) if wrong else "")
    return found


def _tokens(reports: Reports) -> dict[str, Finding]:
    found: dict[str, Finding] = {}
    if "right" in reports:
        report = reports["right"]
        found["right"] = ("error" not in report, str(report.get("error", "")))
    for shown in REFUSALS & reports.keys():
        text = _told(reports[shown])
        found[shown] = (SAID[shown] in text, text)
    return found


def _signs_in(reports: Reports) -> dict[str, Finding]:
    if "signs in" not in reports:
        return {}
    report = reports["signs in"]
    return {"signs in": (SUM in report.get("added", ""), _told(report))}


def _restart(reports: Reports) -> dict[str, Finding]:
    if "restart" not in reports:
        return {}
    text = _told(reports["restart"])
    return {"restart": (SUM in reports["restart"].get("after", ""), text)}


def _told(report: Report) -> str:
    return str(report.get("after") or report.get("error") or "")


def sentence(text: str) -> str:
    """Return what a person reads, short enough for a cell."""
    if text.startswith(SILENCE):
        return text
    # Where the server was says nothing, nor where HTTP is explained.
    one_line = text.partition("\nFor more information")[0]
    one_line = re.sub(r"'?https?://\S+", "…", one_line)
    one_line = re.sub(r"<[^>]*>|[\[\]{}|`\"\\]", " ", one_line)
    words = " ".join(one_line.split())
    cut = words[:LONGEST].rpartition(" ")[0] if len(words) > LONGEST else words
    return f"“{cut}{' …' if cut != words else ''}”"
