"""What people call the parts of a query: fields, lookups, filters, measures, orders.

Models and fields that code does not open have labels, too: the config in a form may be
incomplete, and a stored version may be older than the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date
from typing import Any, Final, NamedTuple, TypeAlias

from django.db.models.fields.reverse_related import ForeignObjectRel
from django.utils.formats import date_format
from django.utils.text import get_text_list
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.catalog.open_models import FieldKind, OpenField, OpenModel, OpenModels
from mcp_app.interface.definitions import Label
from mcp_app.kinds.query.comparisons import DATES, NUMBERS
from mcp_app.kinds.query.scoping import Path
from mcp_app.protocol.json_types import JsonObject

# -- spans -----------------------------------------------------------------------------
# Pieces of a sentence; pages highlight some of them.

FIELD: Final = "field"
PARAMETER: Final = "parameter"


class Span(NamedTuple):
    """A piece of a sentence; `role` is `FIELD`, `PARAMETER`, or "" for plain words."""

    text: str
    role: str = ""


Spans: TypeAlias = list[Span]


def plain_text(spans: Iterable[Span]) -> str:
    """Return a sentence as a text without highlights."""
    return "".join(span.text for span in spans)


def compose(template: str, **parts: Spans | str) -> Spans:
    """Return the spans of a template with its `%(name)s` filled in."""
    spans: Spans = []
    # Even pieces are fixed text, odd ones are names.
    for index, piece in enumerate(re.split(r"%\((\w+)\)s", template)):
        part = parts[piece] if index % 2 else piece
        spans += [Span(part)] if isinstance(part, str) else part
    return [span for span in spans if span.text]


def join_words(texts: Iterable[str]) -> str:
    return get_text_list(list(texts), _("and"))


# -- labels ----------------------------------------------------------------------------
# What people call fields, lookups, measures and orders.

LOOKUP_LABELS: Final[Mapping[str, Label]] = {
    "exact": gettext_lazy("is"),
    "iexact": gettext_lazy("is (any case)"),
    "in": gettext_lazy("is one of"),
    "istartswith": gettext_lazy("starts with"),
    "icontains": gettext_lazy("contains"),
    "words": gettext_lazy("has the words"),
    "gte": gettext_lazy("is at least"),
    "lte": gettext_lazy("is at most"),
    "range": gettext_lazy("is between"),
    "period": gettext_lazy("is in the period"),
    "last_days": gettext_lazy("is in the last … days"),
    "next_days": gettext_lazy("is in the next … days"),
    "isempty": gettext_lazy("is empty"),
}
"""Words by lookup; the value replaces “…”, or comes after the words."""
_LABELS_OF_DATES: Final[Mapping[str, Label]] = {
    "exact": gettext_lazy("is on"),
    "gte": gettext_lazy("is on or after"),
    "lte": gettext_lazy("is on or before"),
}
_LABELS_OF_MANY: Final[Mapping[tuple[str, bool], Label]] = {
    ("in", False): gettext_lazy("include any of"),
    ("in", True): gettext_lazy("include none of"),
    ("isempty", False): gettext_lazy("are none"),
    ("isempty", True): gettext_lazy("are one or more"),
}
_LABELS_OF_TEXTS: Final[Mapping[str, Label]] = {"exact": gettext_lazy("is exactly")}
_EXCLUDING: Final[Mapping[str, Label]] = {
    "exact": gettext_lazy("is not"),
    "iexact": gettext_lazy("is not (any case)"),
    "in": gettext_lazy("is none of"),
    "istartswith": gettext_lazy("does not start with"),
    "icontains": gettext_lazy("does not contain"),
    "words": gettext_lazy("does not have the words"),
    "isempty": gettext_lazy("is not empty"),
}
_SEARCHED: Final[Mapping[str, Label]] = {
    "words": gettext_lazy("words of the %(what)s"),
    "icontains": gettext_lazy("a part of the %(what)s"),
    "istartswith": gettext_lazy("the beginning of the %(what)s"),
}
_UNITS: Final[Mapping[str, Label]] = {
    "day": gettext_lazy("day"),
    "week": gettext_lazy("week"),
    "month": gettext_lazy("month"),
    "quarter": gettext_lazy("quarter"),
    "year": gettext_lazy("year"),
}
_PERIODS: Final[Mapping[str, Label]] = {
    "this": gettext_lazy("this %(unit)s"),
    "last": gettext_lazy("last %(unit)s"),
    "next": gettext_lazy("next %(unit)s"),
    "today": gettext_lazy("today"),
    "yesterday": gettext_lazy("yesterday"),
    "tomorrow": gettext_lazy("tomorrow"),
    "from": gettext_lazy("from now on"),
    "until": gettext_lazy("until now"),
}
_MEASURES: Final[Mapping[str, Label]] = {
    "count": gettext_lazy("count of %(what)s"),
    "sum": gettext_lazy("sum of %(what)s"),
    "avg": gettext_lazy("average of %(what)s"),
    "min": gettext_lazy("smallest %(what)s"),
    "max": gettext_lazy("largest %(what)s"),
}
_MEASURES_OF_TIME: Final[Mapping[str, Label]] = {
    "min": gettext_lazy("earliest %(what)s"),
    "max": gettext_lazy("latest %(what)s"),
}
_TIMES: Final = DATES | {FieldKind.TIME}


def lookup_label(lookup: str, kind: FieldKind | None, exclude: bool = False) -> str:
    """Return what a lookup is called for this kind of field."""
    labels = {**LOOKUP_LABELS}
    if kind is FieldKind.TO_MANY and (lookup, exclude) in _LABELS_OF_MANY:
        return str(_LABELS_OF_MANY[lookup, exclude])
    if kind in DATES:
        labels |= _LABELS_OF_DATES
    elif kind is FieldKind.TEXT:
        labels |= _LABELS_OF_TEXTS
    label = str(labels.get(lookup, lookup))
    if not exclude:
        return label
    return str(_EXCLUDING.get(lookup) or _("not: %(label)s") % {"label": label})


def field_label(field: OpenField) -> str:
    """Return what people call a field."""
    source = field.source
    if isinstance(source, ForeignObjectRel):
        options = source.related_model._meta
        many = field.kind is FieldKind.TO_MANY
        return str(options.verbose_name_plural if many else options.verbose_name)
    name = str(source.verbose_name)
    if field.kind is FieldKind.KEY and source.is_relation:
        return _("%(relation)s (its key)") % {"relation": name}
    return name


def label_and_field(
    path: str, model: OpenModel | None, opened: OpenModels
) -> tuple[str, OpenField | None]:
    """Return what people call a path, and its field; None if no code opens it."""
    labels: list[str] = []
    field: OpenField | None = None
    for name in path.split("."):
        if name == "pk" and field is not None and field.is_relation:
            labels[-1] = _("%(relation)s (its key)") % {"relation": labels[-1]}
            continue
        if field is not None:
            model = opened.get(field.target_model._meta.label)
        field = None if model is None else model.all_fields.get(name)
        if field is None:
            return path, None
        labels.append(field_label(field))
    return ": ".join(labels), field


def label_of_paths(paths: Iterable[Path]) -> str:
    """Return what people call paths that were read: “name or customer: name”."""
    labels = []
    for path in paths:
        fields = [hop.field for hop in path.hops]
        fields += [] if path.stand_in else [path.field]
        labels.append(": ".join(map(field_label, fields)))
    return get_text_list(labels, _("or"))


def search_label(lookup: str, what: str) -> str:
    """Return what a search takes: “words of the name or phone”; else ""."""
    return str(_SEARCHED.get(lookup, "")) % {"what": what}


def unit_label(unit: str, path_label: str) -> str:
    """Return what a group by day, week, … is called: “begins: month”."""
    return f"{path_label}: {_UNITS.get(unit, unit)}"


def period_label(period: str) -> str:
    """Return what people call a period: “last_month” is “last month”."""
    name, _underscore, unit = period.partition("_")
    return str(_PERIODS.get(name, period)) % {"unit": _UNITS.get(unit, unit)}


def measure_label(aggregate: str, what: str, kind: FieldKind | None) -> str:
    """Return what a measure is called: “sum of net total”; `what` is “net total”."""
    labels = {**_MEASURES, **(_MEASURES_OF_TIME if kind in _TIMES else {})}
    return str(labels.get(aggregate, aggregate)) % {"what": what}


def direction_label(kind: FieldKind | None, *, descending: bool) -> str:
    """Return what an order by this kind of field is called: “newest first”."""
    labels = _("ascending"), _("descending")
    if kind in NUMBERS:
        labels = _("smallest first"), _("largest first")
    elif kind in _TIMES:
        labels = _("oldest first"), _("newest first")
    elif kind in (FieldKind.TEXT, FieldKind.TO_ONE):
        labels = _("A to Z"), _("Z to A")
    return labels[descending]


# -- filters ---------------------------------------------------------------------------


def parameter_names(config: JsonObject) -> list[str]:
    """Return the names of the parameters that one filter has."""
    name = config.get("parameter")
    if not name:
        return []
    is_range = config.get("lookup") == "range"
    return [f"{name}_from", f"{name}_to"] if is_range else [name]


def filter_words(
    config: JsonObject, model: OpenModel | None, opened: OpenModels, value: str = ""
) -> Spans:
    """Return what one filter of a config demands: “state is one of Booked, Back”.

    `value` is the fixed value or default in words, if the form has better words than
    the config, such as the text of a row instead of its key.
    """
    label, field = label_and_field_of(config.get("path", ""), model, opened)
    words = _Values(field, config.get("lookup", ""), config.get("exclude", False))
    names = [Span(each, PARAMETER) for each in parameter_names(config)]
    subject = [Span(label, FIELD), Span(" ")]
    if not names:
        return [*subject, *words.clause(config.get("value"), value)]
    # If the parameter is called like the field, “the given state” says it better.
    if [name.text for name in names] == [label]:
        is_period = words.lookup == "period"
        template = _("given as %(name)s") if is_period else _("the given %(name)s")
        names = compose(template, name=names)
    spans = [*subject, *words.clause_of_parameters(names)]
    default = config.get("default")
    if value or default is not None:
        text = value or words.default_text(default)
        spans += compose(_(", else %(value)s"), value=text)
    return spans


def label_and_field_of(
    path: Any, model: OpenModel | None, opened: OpenModels
) -> tuple[str, OpenField | None]:
    """Return what people call a path or a list of paths, and the first field."""
    paths = [path] if isinstance(path, str) else path
    pairs = [label_and_field(each, model, opened) for each in paths]
    labels = [label for label, _field in pairs]
    return get_text_list(labels, _("or")), pairs[0][1] if pairs else None


class _Values(NamedTuple):
    """What a filter says about values, in words."""

    field: OpenField | None
    lookup: str
    exclude: bool

    @property
    def kind(self) -> FieldKind | None:
        return None if self.field is None else self.field.kind

    def clause_of_parameters(self, names: Spans) -> Spans:
        if self.lookup == "range":
            ends = compose(_("%(first)s and %(last)s"), first=names[:1], last=names[1:])
            return self._with_label(ends)
        if self.lookup == "isempty":
            template = _("%(is_empty)s or not: %(name)s")
            return compose(template, is_empty=self._label(), name=names)
        return self._with_label(names)

    def clause(self, value: object, text: str) -> Spans:
        if self.lookup == "isempty":
            # To exclude empty values means the same as “empty: no”.
            return [Span(self._replace(exclude=self.exclude is bool(value))._label())]
        if self.lookup == "range" and isinstance(value, list) and not text:
            ends = [None if each is None else self.text_of(each) for each in value]
            # The stored value may be a list that is no range.
            first, last = [*ends, None, None][:2]
            if first is None or last is None:
                one_end = self._replace(lookup="gte" if last is None else "lte")
                return one_end._with_label(last or first or "…")
            text = _("%(first)s and %(last)s") % {"first": first, "last": last}
        return self._with_label(text or self.text_of(value))

    def default_text(self, default: object) -> str:
        if self.lookup != "range" or not isinstance(default, list):
            return self.text_of(default)
        names = dict(zip(("first", "last"), map(self.text_of, default), strict=False))
        has_first, has_last = (each is not None for each in default)
        if has_first and has_last:
            return _("%(first)s to %(last)s") % names
        return (_("from %(first)s") if has_first else _("up to %(last)s")) % names

    def _label(self) -> str:
        return lookup_label(self.lookup, self.kind, self.exclude)

    def _with_label(self, value: Spans | str) -> Spans:
        ignores_case = self.lookup == "iexact" and not self.exclude
        label = _("is … (any case)") if ignores_case else self._label()
        before, gap, after = label.partition("…")
        value = [Span(value)] if isinstance(value, str) else value
        return [Span(before if gap else f"{before} "), *value, Span(after)]

    def text_of(self, value: object) -> str:
        """Return a JSON value as people read it."""
        choices: Mapping[object, object] = {}
        if self.field is not None and self.kind is FieldKind.CHOICE:
            # Made once for all values, because there may be many choices.
            choices = dict(self.field.value_column.flatchoices)
        values = value if isinstance(value, list) else [value]
        return ", ".join(self._text_of_one(each, choices) for each in values)

    def _text_of_one(self, value: object, choices: Mapping[object, object]) -> str:
        if value is None or value == "":
            return "…"
        if isinstance(value, bool):
            return _("yes") if value else _("no")
        text = str(value)
        if self.lookup == "period":
            text = period_label(text)
        elif choices:
            text = str(choices.get(value, value))
        elif self.kind in DATES:
            with suppress(ValueError):
                text = date_format(date.fromisoformat(text), "j M Y")
        elif isinstance(value, str):
            text = _("“%(text)s”") % {"text": text}
        return text
