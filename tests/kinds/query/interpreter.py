"""What a query means, in plain Python over whole tables: slow, and without SQL.

Written after KINDS.md alone, so that what reads rows can be compared with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias
from uuid import UUID

from django.db.models import Model
from django.utils import timezone

from mcp_app.protocol.json_types import JsonObject

Belongs: TypeAlias = Callable[[Any, Any], bool]
"""Whether a row, the second one, is listed below another."""

RELATIONS: Final = {
    ("Customer", "country"): ("Country", "code"),
    ("Order", "customer"): ("Customer", "id"),
    ("Item", "order"): ("Order", "id"),
    ("Item", "stock"): ("Stock", "id"),
    ("Invoice", "order"): ("Order", "id"),
    ("Invoice", "customer"): ("Customer", "id"),
    ("Order", "invoice"): ("Invoice", "key"),
}
"""Relations to one: where they lead, and by what they are shown."""
TEXTS: Final = {
    "Country": "name",
    "Customer": "name",
    "Order": "number",
    "Stock": "sku",
}
"""What is shown of a row that a relation leads to, in place of its key."""
LISTS: Final[Mapping[tuple[str, str], tuple[str, Belongs]]] = {
    ("Country", "customers"): (
        "Customer",
        lambda here, row: row.country_id == here.code,
    ),
    ("Customer", "orders"): ("Order", lambda here, row: row.customer_id == here.pk),
    ("Customer", "invoices"): ("Invoice", lambda here, row: row.customer_id == here.pk),
    ("Stock", "items"): ("Item", lambda here, row: row.stock_id == here.pk),
    ("Order", "items"): ("Item", lambda here, row: row.order_id == here.pk),
    ("Order", "suppliers"): ("Country", lambda here, row: row.pk in here.supplied_by),
    ("Country", "supplies"): ("Order", lambda here, row: here.pk in row.supplied_by),
}


@dataclass(frozen=True)
class Interpreter:
    """Answers configs from the rows that a caller sees, by the names of models."""

    visible: Mapping[str, Sequence[Any]]
    today: date

    def rows(self, config: JsonObject, values: JsonObject) -> list[JsonObject]:
        name = config["model"].partition(".")[2]
        rows = self._chosen(config, name, self.visible[name], values)
        return [self._object(config, row, values) for row in rows]

    def groups(self, config: JsonObject, values: JsonObject) -> list[JsonObject]:
        name = config["model"].partition(".")[2]
        chosen = [row for row in self.visible[name] if self._fits(config, row, values)]
        groups: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
        for row in chosen:
            group = [
                (self._by(row, by), self._key(row, by)) for by in config["group_by"]
            ]
            groups[tuple(group)].append(row)
        if not config["group_by"]:
            groups.setdefault((), [])
        names = [
            by if isinstance(by, str) else f"{by['path']}_{by['unit']}"
            for by in config["group_by"]
        ]
        return [
            {
                n.replace(".", "_"): text
                for n, (text, _key) in zip(names, key, strict=True)
            }
            | {each["name"]: self._measure(rows, each) for each in config["measures"]}
            for key, rows in groups.items()
        ]

    def _chosen(
        self, config: JsonObject, name: str, rows: Sequence[Any], values: JsonObject
    ) -> list[Any]:
        chosen = [row for row in rows if self._fits(config, row, values)]
        chosen.sort(key=lambda row: row.pk)
        for term in reversed(config.get("order", [])):
            path = term.removeprefix("-")
            there = [row for row in chosen if self._raw(row, path) is not None]
            there.sort(
                key=lambda row: self._raw(row, path), reverse=term.startswith("-")
            )
            nothing = [row for row in chosen if self._raw(row, path) is None]
            chosen = there + nothing
        return chosen

    def _object(self, config: JsonObject, row: Any, values: JsonObject) -> JsonObject:
        shown: JsonObject = {}
        for path in config["fields"]:
            here, at = shown, row
            *steps, last = path.split(".")
            for step in steps:
                at = self._target(at, step)
                if at is None:
                    here[step] = None
                    break
                here = here.setdefault(step, {})
            else:
                here[last] = to_json(self._raw(row, path))
        for listed in config.get("lists", []):
            name, belongs = LISTS[type(row).__name__, listed["path"]]
            below = [each for each in self.visible[name] if belongs(row, each)]
            chosen = self._chosen(listed, name, below, values)
            shown[listed["path"]] = {
                "rows": [
                    self._object(listed, each, values)
                    for each in chosen[: listed.get("limit", 20)]
                ],
                "total": len(chosen),
            }
        return shown

    def _target(self, row: Any, step: str) -> Any:
        name, _column = RELATIONS[type(row).__name__, step]
        return next(
            (each for each in self.visible[name] if _leads_to(row, step, each)), None
        )

    def _at(self, row: Any, path: str) -> tuple[Any, str]:
        *steps, last = path.split(".")
        for step in steps:
            row = row and self._target(row, step)
        return row, last

    def _raw(self, row: Any, path: str) -> Any:
        at, last = self._at(row, path.removesuffix(".pk"))
        if at is None:
            return None
        relation = RELATIONS.get((type(at).__name__, last))
        if relation is None:
            return getattr(at, last)
        name, column = relation
        if not path.endswith(".pk"):
            column = TEXTS.get(name, column)
        target = self._target(at, last)
        return None if target is None else getattr(target, column)

    def _is_text(self, row: Any, path: str) -> bool:
        """Whether a path shows the text of a relation, which is asked in any case."""
        at, last = self._at(row, path)
        name, _column = RELATIONS.get((type(at).__name__, last), ("", ""))
        return name in TEXTS

    def _fits(self, config: JsonObject, row: Any, values: JsonObject) -> bool:
        return all(
            self._fits_one(asked, row, values) for asked in config.get("filters", [])
        )

    def _fits_one(self, asked: JsonObject, row: Any, values: JsonObject) -> bool:
        paths = asked["path"] if isinstance(asked["path"], list) else [asked["path"]]
        name, lookup = asked.get("parameter", ""), asked["lookup"]
        demands = [(lookup, values.get(name, asked.get("value")))]
        if lookup == "words":
            demands = [(lookup, word) for word in (demands[0][1] or "").split()]
        if lookup == "range":
            ends = {"gte": "from", "lte": "to"}.items()
            demands = [(each, values.get(f"{name}_{end}")) for each, end in ends]
        demands = [each for each in demands if each[1] is not None]
        fits = all(
            any(self._fits_path(row, path, each, wanted) for path in paths)
            for each, wanted in demands
        )
        return not demands or fits is not asked.get("exclude", False)

    def _fits_path(self, row: Any, path: str, comparison: str, wanted: Any) -> bool:
        first, _dot, rest = path.partition(".")
        way, is_end = (type(row).__name__, first), rest in ("", "pk")
        if way in RELATIONS and not is_end:
            there = self._target(row, first)
            return bool(there and self._fits_path(there, rest, comparison, wanted))
        if way not in LISTS:
            return self._compare(row, path, comparison, wanted)
        name, belongs = LISTS[way]
        below = [each for each in self.visible[name] if belongs(row, each)]
        if comparison == "isempty" and is_end:
            return (not below) is wanted
        if not rest and name in TEXTS:
            rest, wanted = TEXTS[name], [each.lower() for each in wanted]
        rest = rest or "pk"
        return any(self._fits_path(e, rest, comparison, wanted) for e in below)

    def _compare(self, row: Any, path: str, comparison: str, wanted: Any) -> bool:
        at, _last = self._at(row, path.removesuffix(".pk"))
        if at is None:
            # Rows on the way are not visible: nothing is known of them.
            return False
        value = self._raw(row, path)
        if comparison == "isempty":
            return (value in (None, "")) is wanted
        if value is None:
            return False
        if isinstance(value, datetime):
            value = timezone.localtime(value).date()
        if comparison in ("last_days", "next_days", "period"):
            first, end = self._days(comparison, wanted)
            return bool(first <= value < end)
        if self._is_text(row, path) and comparison in ("exact", "in"):
            wanted = (
                [each.lower() for each in wanted]
                if comparison == "in"
                else wanted.lower()
            )
            value = value.lower()
        return COMPARE[comparison](value, wanted)

    def _days(self, comparison: str, wanted: Any) -> tuple[date, date]:
        tomorrow = self.today + timedelta(days=1)
        if comparison == "last_days":
            return tomorrow - timedelta(days=wanted), tomorrow
        if comparison == "next_days":
            return self.today, self.today + timedelta(days=wanted)
        every = [date(2025, 1, 1) + timedelta(days=count) for count in range(1_100)]
        days = [day for day in every if PERIODS[wanted](day, self.today)]
        return days[0], days[-1] + timedelta(days=1)

    def _key(self, row: Any, by: Any) -> Any:
        """Return the key of the row whose text stands for a group."""
        is_text = isinstance(by, str) and self._is_text(row, by)
        return self._raw(row, f"{by}.pk") if is_text else None

    def _by(self, row: Any, by: Any) -> Any:
        if isinstance(by, str):
            return to_json(self._raw(row, by))
        value = self._raw(row, by["path"])
        if isinstance(value, datetime):
            value = timezone.localtime(value).date()
        return value and FIRST_DAY[by["unit"]](value).isoformat()

    def _measure(self, rows: Sequence[Any], measure: JsonObject) -> Any:
        if measure["aggregate"] == "count":
            return len(rows)
        raw = [self._raw(row, measure["path"]) for row in rows]
        values = [each for each in raw if each is not None]
        if not values:
            return None
        if measure["aggregate"] != "avg":
            return to_json(MEASURE[measure["aggregate"]](values))
        average = sum(values) / len(values)
        if isinstance(average, Decimal):
            return f"{average:.6f}"
        return round(average, 6)


def _leads_to(row: Any, step: str, target: Model) -> bool:
    if step == "invoice":
        return bool(target.order_id == row.pk)  # type: ignore[attr-defined]
    _name, column = RELATIONS[type(row).__name__, step]
    return bool(getattr(row, f"{step}_id") == getattr(target, column))


def to_json(value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"{value:.2f}"
    if isinstance(value, datetime):
        return timezone.localtime(value).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value


COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "exact": lambda value, wanted: bool(value == wanted),
    "iexact": lambda value, wanted: value.lower() == wanted.lower(),
    "in": lambda value, wanted: value in wanted,
    "istartswith": lambda value, wanted: value.lower().startswith(wanted.lower()),
    "icontains": lambda value, wanted: wanted.lower() in value.lower(),
    "words": lambda value, wanted: wanted.lower() in value.lower(),
    "gte": lambda value, wanted: bool(value >= wanted),
    "lte": lambda value, wanted: bool(value <= wanted),
}
MEASURE: Final[Mapping[str, Callable[[Sequence[Any]], Any]]] = {
    "sum": sum,
    "min": min,
    "max": max,
}


UNIT_NUMBERS: Final[Mapping[str, Callable[[date], int]]] = {
    "week": lambda day: (day.toordinal() - 1) // 7,
    "month": lambda day: day.year * 12 + day.month,
    "quarter": lambda day: day.year * 4 + (day.month - 1) // 3,
    "year": lambda day: day.year,
}
"""Numbers that grow by one from each week, month, … to the next."""


def _period(number: Callable[[date], int], step: int) -> Callable[[date, date], bool]:
    return lambda day, today: number(day) - number(today) == step


PERIODS: Final[Mapping[str, Callable[[date, date], bool]]] = {
    "from_now_on": lambda day, today: day >= today,
    "until_now": lambda day, today: day <= today,
    "yesterday": _period(date.toordinal, -1),
    "today": _period(date.toordinal, 0),
    "tomorrow": _period(date.toordinal, 1),
} | {
    f"{which}_{unit}": _period(number, step)
    for which, step in (("last", -1), ("this", 0), ("next", 1))
    for unit, number in UNIT_NUMBERS.items()
}
FIRST_DAY: Final[Mapping[str, Callable[[date], date]]] = {
    "day": lambda day: day,
    "week": lambda day: day - timedelta(days=day.weekday()),
    "month": lambda day: day.replace(day=1),
    "quarter": lambda day: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
    "year": lambda day: day.replace(month=1, day=1),
}
