"""A query in words: part by part, in one sentence, and as drafts for clients.

Configs fit the `SCHEMA`; see `mcp_app.kinds.query.labels` for what they may lack.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from django.utils.translation import gettext as _

from mcp_app.catalog.open_models import FieldKind, OpenField, OpenModels
from mcp_app.kinds.query.comparisons import NUMBERS
from mcp_app.kinds.query.config import (
    GROUPS,
    ONE,
    ROWS,
    TOTALS,
    USUAL_ROWS,
    usual_group_order,
)
from mcp_app.kinds.query.labels import (
    FIELD,
    Span,
    Spans,
    compose,
    direction_label,
    filter_words,
    join_words,
    label_and_field,
    label_and_field_of,
    measure_label,
    parameter_names,
    plain_text,
    search_label,
    unit_label,
)
from mcp_app.protocol.json_types import JsonObject


class _AnswerPart(NamedTuple):
    """A group or a measure of the answer; `plural` is how several are called."""

    label: str
    kind: FieldKind | None
    plural: str = ""


class QueryText:
    """The texts about a config: for staff who publish it, and drafts for clients."""

    def __init__(self, config: JsonObject, opened: OpenModels) -> None:
        label = str(config.get("model", ""))
        self._config, self._opened = config, opened
        self._model = opened.get(label)
        self._title = self._rows = self._row = label
        if self._model is not None:
            names = self._model.model._meta
            self._title = self._model.title
            self._rows = str(names.verbose_name_plural)
            self._row = str(names.verbose_name)
        self._answer = config.get("answer", ROWS)
        self._filters: Sequence[JsonObject] = config.get("filters", ())
        rows, groups = ({}, config) if self._answer == GROUPS else (config, {})
        self._columns = [self._find(each)[0] for each in rows.get("fields", ())]
        self._lists: Sequence[JsonObject] = rows.get("lists", ())
        self._groups = dict(map(self._group, groups.get("group_by", ())))
        self._measures = dict(map(self._measure, groups.get("measures", ())))
        self._totals = dict(map(self._measure, rows.get(TOTALS, ())))
        self._limit = config.get("limit", USUAL_ROWS if self._answer == ROWS else "")
        # If there is a limit of groups, the text names the default order, too.
        usual = self.usual_order()[:1] if "limit" in config else []
        self._terms: Sequence[str] = config.get("order") or usual

    def _group(self, config: str | JsonObject) -> tuple[str, _AnswerPart]:
        """Return a group's name in the answer, and its texts."""
        path = config if isinstance(config, str) else config["path"]
        label, field = self._find(path)
        name = path.replace(".", "_")
        kind = None if field is None else field.kind
        if not isinstance(config, str):
            name, label = f"{name}_{config['unit']}", unit_label(config["unit"], label)
        plural = _("groups by %(label)s") % {"label": label}
        if field is not None and kind is FieldKind.TO_ONE:
            plural = str(field.target_model._meta.verbose_name_plural)
        return name, _AnswerPart(label, kind, plural)

    def _measure(self, config: JsonObject) -> tuple[str, _AnswerPart]:
        path = config.get("path")
        what, field = self._find(path) if path else (self._rows, None)
        kind = None if field is None else field.kind
        label = measure_label(config["aggregate"], what, kind)
        return config["name"], _AnswerPart(label, kind or FieldKind.NUMBER)

    def _find(self, path: str) -> tuple[str, OpenField | None]:
        return label_and_field(path, self._model, self._opened)

    def usual_order(self) -> list[str]:
        """Return the order of groups that counts if the config has none."""
        kinds = {name: each.kind for name, each in self._groups.items()}
        aggregates = {
            each["name"]: each["aggregate"]
            for each in self._config.get("measures", ())
            if each["name"] in self._measures
        }
        terms = usual_group_order(kinds, aggregates)
        return [f"{'-' * each.descending}{each.name}" for each in terms]

    def group_terms(self) -> Iterator[tuple[str, str, FieldKind | None]]:
        """Yield name, label and kind of field of all that groups can be sorted by."""
        for name, part in {**self._groups, **self._measures}.items():
            yield name, part.label if name in self._groups else name, part.kind

    def parts(self) -> Iterator[tuple[str, str]]:
        """Yield a label and a text for each column, list, measure, filter and limit."""
        yield _("Looks up"), self._title
        if self._model is not None and self._model.scope:
            yield _("Whose rows"), str(self._model.scope)
        yield from self._answer_parts()
        for each in self._filters:
            words = plain_text(filter_words(each, self._model, self._opened))
            says = _("the client says") if each.get("parameter") else _("fixed")
            says = _("the client must say it") if each.get("required") else says
            yield _("Only %(rows)s where") % {"rows": self._rows}, f"{words}, {says}"
        if order := self._order("%(name)s, %(direction)s"):
            yield _("Sorted by"), order
        if self._limit:
            is_groups = self._answer == GROUPS
            limit = _("%(limit)s groups") if is_groups else _("%(limit)s rows")
            yield _("At most"), limit % {"limit": self._limit}
        if self._config.get("count"):
            yield _("Says"), _("how many rows there are in all")
        for name, total in self._totals.items():
            yield _("Totals of all rows that fit"), f"{name}: {total.label}"

    def _answer_parts(self) -> Iterator[tuple[str, str]]:
        for group in self._groups.values():
            yield _("One group for each"), group.label
        for name, measure in self._measures.items():
            yield _("Numbers of each group"), f"{name}: {measure.label}"
        if self._columns:
            yield _("Columns"), ", ".join(self._columns)
        for each in self._lists:
            label = _("With each %(row)s, a list") % {"row": self._row}
            yield label, plain_text(self._list_words(each))

    def _order(self, template: str) -> str:
        """Return the order of the answer in words; "" if it has none."""
        terms = []
        of_groups = {name: (label, kind) for name, label, kind in self.group_terms()}
        for term in self._terms:
            name, descending = term.removeprefix("-"), term.startswith("-")
            if self._answer == GROUPS:
                label, kind = of_groups.get(name, (name, None))
            else:
                label, field = self._find(name)
                kind = None if field is None else field.kind
            direction = direction_label(kind, descending=descending)
            terms.append(template % {"name": label, "direction": direction})
        return _(", then by ").join(terms)

    def _inner(self, config: JsonObject) -> QueryText:
        """Return the texts about a list below each row."""
        field = self._find(config["path"])[1]
        target = None if field is None else field.target_model._meta.label
        return QueryText({**config, "model": target, "answer": ONE}, self._opened)

    def _list_words(self, config: JsonObject) -> Spans:
        label, inner = self._find(config["path"])[0], self._inner(config)
        texts = [", ".join(inner._columns)]
        texts.append(inner._order("%(name)s, %(direction)s"))
        if limit := config.get("limit"):
            texts.append(_("at most %(limit)s") % {"limit": limit})
        texts += [plain_text(inner._only(inner._filters))] if inner._filters else []
        about = "; ".join(filter(None, texts))
        return [Span(label, FIELD), Span(_(" (%(about)s)") % {"about": about})]

    def sentence(self) -> Spans:
        """Say what is looked up, and what the answer has."""
        spans = self._what()
        if self._filters:
            spans += compose(_(" Only %(only)s."), only=self._only(self._filters))
        return spans

    def _only(self, filters: Iterable[JsonObject]) -> Spans:
        """Return which rows fit: “hires whose begins is …, and whose state is …”."""
        spans = [Span(self._rows)]
        # Filters with parameters come last, so that “as the client says” is there once.
        ordered = sorted(filters, key=lambda each: bool(each.get("parameter")))
        for index, each in enumerate(ordered):
            template = _(", and whose %(words)s") if index else _(" whose %(words)s")
            words = filter_words(each, self._model, self._opened)
            spans += compose(template, words=words)
        if ordered and ordered[-1].get("parameter"):
            spans.append(Span(_(", as the client says")))
        return spans

    def _what(self) -> Spans:
        """Return the content of the answer in words, without the filters."""
        if top := self._top():
            return top
        template = _("%(rows)s: %(columns)s")
        if self._groups:
            template = _("%(rows)s, for each %(groups)s: %(columns)s")
        elif self._answer == ONE:
            template = _("One %(row)s: %(columns)s")
        groups = join_words(group.label for group in self._groups.values())
        measures = map(_measure_words, self._measures.items())
        spans = compose(
            template,
            rows=[Span(self._title, FIELD)],
            row=[Span(self._row, FIELD)],
            groups=[Span(groups, FIELD)],
            columns=join_words([*self._columns, *measures]),
        )
        for each in self._lists:
            spans += compose(_(", each with its %(list)s"), list=self._list_words(each))
        if order := self._order("%(name)s (%(direction)s)"):
            spans += compose(_(", sorted by %(order)s"), order=order)
        if self._limit:
            spans += compose(_(", at most %(limit)s"), limit=str(self._limit))
        if self._totals:
            words = join_words(map(_measure_words, self._totals.items()))
            spans += compose(
                _(", with totals of all that fit: %(totals)s"), totals=words
            )
        return [*spans, Span(".")]

    def _top(self) -> Spans:
        """Return “The 10 customers with the largest turnover (…)”, or []."""
        order = self._terms
        name = order[0].removeprefix("-") if len(order) == 1 else ""
        measure = self._measures.get(name)
        if measure is None or measure.kind not in NUMBERS or len(self._groups) != 1:
            return []
        if not self._limit:
            return []
        template = _("The %(limit)s %(groups)s with the smallest %(measure)s")
        if order[0].startswith("-"):
            template = _("The %(limit)s %(groups)s with the largest %(measure)s")
        [group] = self._groups.values()
        spans = compose(
            template,
            limit=str(self._limit),
            groups=[Span(group.plural, FIELD)],
            measure=[Span(name, FIELD), Span(f" ({measure.label})")],
        )
        measures = [each for each in self._measures.items() if each[0] != name]
        if measures:
            words = join_words(map(_measure_words, measures))
            spans += compose(_(", with %(more)s"), more=words)
        return [*spans, Span(".")]

    def title(self) -> str:
        """Return a title for clients: “Customers by name”."""
        if self._answer == ONE:
            return _("One %(row)s") % {"row": self._row}
        if self._top() and self._terms[0].startswith("-"):
            [group] = self._groups.values()
            details = {"limit": self._limit, "groups": group.plural}
            return _("Top %(limit)s %(groups)s") % details
        labels = [each.label for each in self._groups.values()]
        if self._answer != GROUPS:
            paths = [each["path"] for each in self._filters if each.get("parameter")]
            first_paths = (path if isinstance(path, str) else path[0] for path in paths)
            labels = [self._find(each)[0] for each in first_paths]
        if not labels:
            return self._title
        details = {"rows": self._title, "labels": join_words(dict.fromkeys(labels))}
        return _("%(rows)s by %(labels)s") % details

    def description(self) -> str:
        """Return a description for clients: the answer, and the parameters."""
        text = plain_text(self._what())
        if fixed := [each for each in self._filters if not each.get("parameter")]:
            text += _(" Only %(only)s.") % {"only": plain_text(self._only(fixed))}
        return " ".join([text, *self._requests()])

    def _requests(self) -> Iterator[str]:
        """Yield a sentence about the parameters of each filter."""
        for each in self._filters:
            if each.get("parameter"):
                what = label_and_field_of(each["path"], self._model, self._opened)[0]
                yield _request_for(each, search_label(each["lookup"], what))
        for each in self._lists:
            yield from self._inner(each)._requests()


def _measure_words(item: tuple[str, _AnswerPart]) -> str:
    return f"{item[0]} ({item[1].label})"


def _request_for(config: JsonObject, searched: str) -> str:
    """Return the sentence for one filter; `searched` is what a client looks for."""
    templates = {
        "range": _("Give %(names)s for a span, both ends included."),
        "in": _("Give %(names)s: one or several."),
        "period": _("Give %(names)s, such as last_month."),
        "last_days": _("Give %(names)s: how many days back."),
        "next_days": _("Give %(names)s: how many days ahead."),
    }
    usual = _("Give %(names)s: %(searched)s.") if searched else _("Give %(names)s.")
    names = join_words(parameter_names(config))
    template = templates.get(config["lookup"], usual)
    return template % {"names": names, "searched": searched}
