"""The filter of the list of calls: a time range, fixed choices, names and a page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils.dateparse import parse_datetime
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.admin.calls.outcome_help import MEANINGS
from mcp_app.admin.page.keys import ROW_KEY
from mcp_app.interface.call_record import FAILED, REFUSED, Outcome
from mcp_app.interface.definitions import Label
from mcp_app.interface.principal import CONSOLE
from mcp_app.interface.rules import visible
from mcp_app.models.call_rows import CallQuery, Condition, Key
from mcp_app.models.calls import HOUR_S, MINUTE_S
from mcp_app.server.recording import TASK_PREFIX
from mcp_app.site_time import local_time, site_time, unix_time

LAST_HOUR: Final = "hour"
DAY: Final = "day"
BETWEEN: Final = "between"
WHEN: Final[Mapping[str, Label]] = {
    LAST_HOUR: gettext_lazy("Last hour"),
    "today": gettext_lazy("Today"),
    "yesterday": gettext_lazy("Yesterday"),
    DAY: gettext_lazy("Last 24 hours"),
    "week": gettext_lazy("Last 7 days"),
    "month": gettext_lazy("Last 30 days"),
    BETWEEN: gettext_lazy("From … to"),
}
AGES: Final = {
    LAST_HOUR: timedelta(hours=1),
    DAY: timedelta(days=1),
    "week": timedelta(days=7),
    "month": timedelta(days=30),
}
KINDS: Final[Mapping[str, Label]] = {
    "tool": gettext_lazy("Tool"),
    "resource": gettext_lazy("Resource"),
    "template": gettext_lazy("Resource template"),
    "prompt": gettext_lazy("Prompt"),
    "completion": gettext_lazy("Completion"),
    "event": gettext_lazy("Event"),
}
ANY_REFUSAL: Final = "any_refusal"
ANY_FAILURE: Final = "any_failure"
CLASSES: Final = {ANY_REFUSAL: REFUSED, ANY_FAILURE: FAILED}
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    Outcome.ANSWERED: (Outcome.ANSWERED,),
    "any_waiting": (Outcome.ASKED, Outcome.TASK),
    "any_end": (Outcome.CANCELLED, Outcome.CLIENT_GONE),
    "any_mistake": (
        *(Outcome.ARGUMENTS, Outcome.INVALID, Outcome.INCAPABLE, Outcome.TOOL_ERROR),
    ),
    "any_lack": (
        *(Outcome.UNKNOWN, Outcome.FORBIDDEN, Outcome.SWITCHED_OFF, Outcome.LIMITED),
    ),
    "any_delay": (Outcome.TIMED_OUT, Outcome.SHUT_DOWN, Outcome.UNAVAILABLE),
    "any_fault": (
        *(Outcome.OTHER_SITE, Outcome.EGRESS, Outcome.CRASHED, Outcome.FAILED),
        *(Outcome.TOO_LARGE, Outcome.SHAPE),
    ),
}
"""The choices of outcomes: each outcome is in one group."""
OUTCOMES: Final[Mapping[str, Label]] = {
    **{name: meaning.label for name, meaning in MEANINGS.items()},
    "any_waiting": gettext_lazy("Asked, or a task"),
    "any_end": gettext_lazy("Broken off"),
    "any_mistake": gettext_lazy("Refused: wrong values"),
    "any_lack": gettext_lazy("Refused: not there, or not allowed"),
    "any_delay": gettext_lazy("Failed: too slow, or busy"),
    "any_fault": gettext_lazy("Failed: other reasons"),
    ANY_FAILURE: gettext_lazy("All failed"),
    ANY_REFUSAL: gettext_lazy("All refused"),
}
ORIGINS: Final[Mapping[str, Label]] = {CONSOLE: gettext_lazy("The page Try it")}
SLOWER: Final[Mapping[str, Label]] = {
    "100": gettext_lazy("100 ms"),
    "1000": gettext_lazy("1 s"),
    "5000": gettext_lazy("5 s"),
    "10000": gettext_lazy("10 s"),
}
"""Bounds of the counters' columns, in milliseconds."""
CHOICES: Final = {
    "when": (gettext_lazy("When"), WHEN),
    "outcome": (gettext_lazy("Outcome"), OUTCOMES),
    "kind": (gettext_lazy("Kind"), KINDS),
    "slower": (gettext_lazy("Slower than"), SLOWER),
    "origin": (gettext_lazy("From"), ORIGINS),
}
TEXTS: Final = ("server", "name", "user", "q")
MAX_TEXT_LENGTH: Final = 255
YEARS: Final = (2000, 3000)
ERROR_NUMBER: Final = re.compile(r"[0-9a-f]{8}")
_PAGE_KEY: Final = re.compile(rf"({ROW_KEY.pattern})\.({ROW_KEY.pattern})")


@dataclass(frozen=True, slots=True)
class CallFilter:
    """The query string of the list; `start` and `end` are whole hours, or minutes.

    So rows and counters cover the same calls. `end` is None for "until now".
    """

    when: str
    start: datetime
    end: datetime | None = None
    outcome: str = ""
    kind: str = ""
    slower: str = ""
    origin: str = ""
    server: str = ""
    name: str = ""
    user: str = ""
    q: str = ""
    given: Mapping[str, str] = field(default_factory=dict)
    """The typed beginning and end."""
    older: Key | None = None
    newer: Key | None = None
    problems: tuple[str, ...] = ()

    @property
    def counter_seconds(self) -> int:
        """The length of the counter rows to read for this time range."""
        return MINUTE_S if self.when == LAST_HOUR else HOUR_S

    @property
    def start_ms(self) -> int:
        return milliseconds(self.start)

    @property
    def end_ms(self) -> int | None:
        return None if self.end is None else milliseconds(self.end)

    @property
    def slower_ms(self) -> int:
        return int(self.slower or 0)

    @property
    def wanted_outcomes(self) -> tuple[str, ...]:
        """The outcomes to show; () for all."""
        one = (self.outcome,) if self.outcome else ()
        return {**CLASSES, **GROUPS}.get(self.outcome, one)

    @property
    def is_countable(self) -> bool:
        """Whether counters can answer this filter.

        Counters know neither users nor search texts, and do not count trials.
        """
        return not (self.user or self.q or self.origin)

    def call_query(self, names: tuple[str, ...] = ()) -> CallQuery:
        """Return the query of the rows; `names` are those that match the search.

        The search uses the index of the rarest condition: failures are rarer than the
        calls of one name. Answered calls are the most, and no index has them.
        """
        conditions = self._conditions()
        ways: list[Condition] = []
        if self.q and "task" not in conditions:
            searched = [("user_name", self.q), *(("name", each) for each in names)]
            ways = [(column, "=", text) for column, text in searched]
        elif "user" in conditions:
            ways = [conditions.pop("user")]
        elif self.wanted_outcomes and self.wanted_outcomes != (Outcome.ANSWERED,):
            conditions.pop("outcome")
            ways = [("outcome", "=", outcome) for outcome in self.wanted_outcomes]
        elif "name" in conditions:
            ways = [conditions.pop("name")]
        return CallQuery(self.start_ms, self.end_ms, ways, list(conditions.values()))

    def _conditions(self) -> dict[str, Condition]:
        """Return the condition of each filter that is set."""
        equal = {
            "user": ("user_name", self.user),
            "name": ("name", self.name),
            "kind": ("kind", self.kind),
            "server": ("server", self.server),
            "origin": ("principal", self.origin),
            "task": ("session", self.q if self.q.startswith(TASK_PREFIX) else ""),
        }
        conditions: dict[str, Condition] = {
            key: (column, "=", value) for key, (column, value) in equal.items() if value
        }
        if self.wanted_outcomes:
            conditions["outcome"] = ("outcome", "IN", self.wanted_outcomes)
        if self.slower:
            conditions["slower"] = ("took_us", ">", self.slower_ms * 1_000)
        return conditions

    def query_string(self, **changes: str | Key) -> str:
        """Return the query string with these changes, on the first page."""
        values: dict[str, str | Key] = {
            "when": "" if self.when == DAY else self.when,
            **self.given,
            # All but the first, which is `when`.
            **{name: getattr(self, name) for name in (*CHOICES, *TEXTS)[1:]},
            **changes,
        }
        parameters = {
            name: f"{value.time_ms}.{value.pk}" if isinstance(value, Key) else value
            for name, value in values.items()
            if value
        }
        return f"?{urlencode(parameters)}" if parameters else "?"


def milliseconds(time: datetime) -> int:
    """Return a time as columns store it."""
    return int(time.timestamp() * 1_000)


def stored_time(time_ms: int) -> datetime:
    """Return the time that a column stores."""
    return unix_time(time_ms / 1_000)


def read_filter(request: HttpRequest) -> CallFilter:
    """Return the filter of a request; ignore invalid values, and list the problems."""
    values = {name: request.GET.get(name, "").strip() for name in (*CHOICES, *TEXTS)}
    problems = []
    for name, (label, choices) in CHOICES.items():
        if values[name] and values[name] not in choices:
            text = _("“%(value)s” is not a choice for “%(name)s”, and was ignored.")
            problems.append(text % {"value": visible(values[name]), "name": label})
            values[name] = ""
    for name in TEXTS:
        # No row contains NUL, and some databases refuse it in a query.
        values[name] = values[name].replace("\0", "")[:MAX_TEXT_LENGTH]
    arguments: dict[str, Any] = {**values, "when": values["when"] or DAY}
    call_filter = CallFilter(
        **arguments,
        start=_round_down(now() - AGES[DAY], HOUR_S),
        older=_parse_key(request.GET.get("older", "")),
        newer=_parse_key(request.GET.get("newer", "")),
        problems=tuple(problems),
    )
    return _with_time_range(call_filter, request)


def _with_time_range(call_filter: CallFilter, request: HttpRequest) -> CallFilter:
    if call_filter.when == "today":
        return replace(call_filter, start=_midnight(0))
    if call_filter.when == "yesterday":
        return replace(call_filter, start=_midnight(1), end=_midnight(0))
    if call_filter.when != BETWEEN:
        start = _round_down(now() - AGES[call_filter.when], call_filter.counter_seconds)
        return replace(call_filter, start=start)
    texts = {name: request.GET.get(name, "").strip() for name in ("from", "to")}
    problems = [*call_filter.problems]
    times: dict[str, datetime] = {}
    for name, text in texts.items():
        parsed = _parse_time(text)
        if parsed is not None:
            times[name] = parsed
        elif text:
            message = _("“%(value)s” is not a time. Write it as 2026-11-18T14:00.")
            problems.append(message % {"value": visible(text)})
    end = times.get("to")
    start = times.get("from", (end or now()) - AGES[DAY])
    if end is not None and end <= start:
        problem = _("The end was ignored, because it is not after the beginning.")
        problems.append(problem)
        end = None
    # Adding 59 minutes first rounds the end up.
    return replace(
        call_filter,
        start=_round_down(start, HOUR_S),
        end=None if end is None else _round_down(end + timedelta(minutes=59), HOUR_S),
        given={name: texts[name] for name in times},
        problems=tuple(problems),
    )


def _parse_time(text: str) -> datetime | None:
    """Return the time that a browser sent, by default in the current time zone."""
    try:
        parsed = parse_datetime(text)
    except ValueError:
        return None
    # Adding or subtracting would overflow at the ends of the calendar.
    if parsed is None or not YEARS[0] <= parsed.year < YEARS[1]:
        return None
    return site_time(parsed)


def _round_down(time: datetime, seconds: int) -> datetime:
    """Return a time rounded down to a multiple of `seconds`."""
    stamp = int(time.timestamp())
    return unix_time(stamp - stamp % seconds)


def _midnight(days_ago: int) -> datetime:
    """Return the local start of a day, rounded down to a whole hour of UTC."""
    day = local_time(now()).date() - timedelta(days=days_ago)
    return _round_down(site_time(datetime.combine(day, time.min)), HOUR_S)


def _parse_key(text: str) -> Key | None:
    match = _PAGE_KEY.fullmatch(text)
    return Key(int(match[1]), int(match[2])) if match else None
