"""Models that code opens: the fields that rows of the kind `query` may show and filter.

Staff can name no other data of the site.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, TypeAlias, Unpack

from django.contrib.auth import get_permission_codename, get_user_model
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.db.models import Manager, Model, QuerySet
from django.db.models.fields.related import RelatedField
from django.db.models.fields.reverse_related import ForeignObjectRel
from django.utils.translation import gettext_lazy as _

from mcp_app.catalog.decorators import ModelOptions
from mcp_app.catalog.findings import check_options
from mcp_app.catalog.secret_fields import is_secret_name
from mcp_app.interface.definitions import Label
from mcp_app.interface.errors import RegistrationError
from mcp_app.interface.principal import AccessRequest
from mcp_app.invalidation.row_events import RowEvents

AnyField: TypeAlias = Any
"""A field or a relation of a model; the type stubs lack members of its subclasses."""
Rows: TypeAlias = Literal["all"] | Callable[[AccessRequest], QuerySet[Any]]
ALL: Final = "all"
LINE_LENGTH: Final = 255
"""The longest text that can stand for a row."""


class FieldKind(Enum):
    """The kinds of fields, as people who write a query see them."""

    TEXT = "text"
    CHOICE = "choice"
    YES_NO = "yes or no"
    NUMBER = "whole number"
    FLOAT = "number"
    DECIMAL = "decimal"
    DATE = "date"
    DATETIME = "date and time"
    TIME = "time"
    DURATION = "duration"
    KEY = "key"
    TO_ONE = "relation to one"
    TO_MANY = "relation to many"
    OTHER = "other"
    """A field that can only be shown."""


_KINDS: Mapping[type[AnyField], FieldKind] = {
    models.BooleanField: FieldKind.YES_NO,
    models.CharField: FieldKind.TEXT,
    models.TextField: FieldKind.TEXT,
    models.FileField: FieldKind.TEXT,
    models.FilePathField: FieldKind.TEXT,
    models.IntegerField: FieldKind.NUMBER,
    models.FloatField: FieldKind.FLOAT,
    models.DecimalField: FieldKind.DECIMAL,
    models.DateTimeField: FieldKind.DATETIME,
    models.DateField: FieldKind.DATE,
    models.TimeField: FieldKind.TIME,
    models.UUIDField: FieldKind.KEY,
    models.GenericIPAddressField: FieldKind.KEY,
    models.DurationField: FieldKind.DURATION,
    models.JSONField: FieldKind.OTHER,
}
_CHOOSING: Final = frozenset({FieldKind.TEXT, FieldKind.NUMBER})
"""Kinds of columns that count as `CHOICE` if they have choices."""


class Link(NamedTuple):
    """The columns that a join compares: `there` is in the target or a through table."""

    here: str
    there: str


class Between(NamedTuple):
    """The through table of a many-to-many relation, and its key to the target."""

    model: type[Model]
    forward: AnyField


@dataclass(frozen=True)
class OpenField:
    """A field of a model, under the name that code opens it by."""

    name: str
    kind: FieldKind
    source: AnyField = field(repr=False)
    permission: str = ""

    @property
    def is_relation(self) -> bool:
        return self.kind in (FieldKind.TO_ONE, FieldKind.TO_MANY)

    @property
    def target_model(self) -> type[Model]:
        """The model that a relation leads to."""
        related: type[Model] = self.source.related_model
        return related

    @cached_property
    def value_column(self) -> AnyField:
        """The column whose values are shown; for a relation, the target's key."""
        column = self.source
        if isinstance(column, ForeignObjectRel) or column.many_to_many:
            column = column.related_model._meta.pk
        while isinstance(column, RelatedField):
            column = column.target_field
        return column

    @property
    def choices(self) -> Sequence[tuple[Any, Any]]:
        """The choices of the field as values and titles, without null."""
        return [each for each in self.value_column.flatchoices if each[0] is not None]

    @cached_property
    def join_columns(self) -> Link:
        """The columns that join a relation; `there` may be in the `through_table`."""
        if self.through_table is not None:
            back = _through_key(self.source, forward=False)
            return Link(back.target_field.attname, back.attname)
        if isinstance(self.source, ForeignObjectRel):
            key = self.source.remote_field
            return Link(key.target_field.attname, key.attname)
        return Link(self.source.attname, self.source.target_field.attname)

    @cached_property
    def through_table(self) -> Between | None:
        if not self.source.many_to_many:
            return None
        forward = _through_key(self.source, forward=True)
        return Between(forward.model, forward)

    @property
    def key_column(self) -> str:
        """The column of a relation's target that is shown as the key of its row."""
        if isinstance(self.source, ForeignObjectRel) or self.source.many_to_many:
            key: str = self.target_model._meta.pk.attname
            return key
        return self.join_columns.there

    @property
    def may_be_empty(self) -> bool:
        """Whether it may be null or an empty text; relations may always be null."""
        if self.nullable or self.kind not in (FieldKind.TEXT, FieldKind.CHOICE):
            return self.nullable
        return bool(self.source.blank and self.source.empty_strings_allowed)

    @property
    def nullable(self) -> bool:
        return self.is_relation or bool(self.source.null)


def _through_key(source: AnyField, *, forward: bool) -> AnyField:
    """Return the through table's key to the target (`forward`), or to the model."""
    is_field = not isinstance(source, ForeignObjectRel)
    relation = source if is_field else source.remote_field
    through = relation.remote_field.through
    name_methods = relation.m2m_reverse_field_name, relation.m2m_field_name
    # From the reverse side of the relation, the two keys are exchanged.
    return through._meta.get_field(name_methods[is_field is not forward]())


@dataclass(frozen=True, kw_only=True)
class OpenModel:
    """A model with the `fields` that may be shown, and the `filters`.

    Callers need the `permission`, and the permissions of the fields that are used; ""
    demands nothing.
    """

    model: type[Model]
    fields: Mapping[str, OpenField]
    filters: Mapping[str, OpenField]
    rows: Rows = field(repr=False)
    permission: str
    title: str
    text: str = ""
    """The field that stands for a row; "" if its key does."""
    scope: Label = ""
    """A text for staff that says whose rows it shows."""
    events: frozenset[str] = frozenset()
    """Which changes of rows are events: "created", "changed", "deleted"."""
    watch: tuple[str, ...] = ()
    """The opened columns of which an event notes whether they changed."""

    @property
    def label(self) -> str:
        label: str = self.model._meta.label
        return label

    @property
    def topic(self) -> str:
        """The topic of its rows' events in the outbox; no event type is called so."""
        return f"+{self.label}"

    @property
    def per_caller(self) -> bool:
        """Whether its rows depend on the caller."""
        return self.rows != ALL

    @property
    def rows_name(self) -> str:
        """The name of the function that chooses the rows, "" for all rows."""
        if not callable(self.rows):
            return ""
        name = getattr(self.rows, "__qualname__", repr(self.rows))
        return f"{getattr(self.rows, '__module__', '')}.{name}"

    @cached_property
    def all_fields(self) -> Mapping[str, OpenField]:
        """All fields that may be shown or filtered."""
        return {**self.filters, **self.fields}


OpenModels: TypeAlias = Mapping[str, OpenModel]
"""What is opened, by the models' labels ("shop.Order")."""


def open_model(
    model: object,
    *,
    fields: object,
    rows: object,
    filters: object = None,
    **options: Unpack[ModelOptions],
) -> OpenModel:
    """Return an open model; raise `RegistrationError` if it cannot be opened so."""
    opened = _checked_model(model)
    owner = opened._meta.label
    check_options(owner, "open_model", ModelOptions, options)
    if rows != ALL and not callable(rows):
        raise RegistrationError(
            f'{owner}: rows is {rows!r}. It must be "all", or a function that takes an'
            " AccessRequest and returns a queryset of the rows that this caller sees."
        )
    field_permissions = dict(options.get("permissions") or {})
    maker = _FieldMaker(opened, field_permissions)
    visible_fields = maker.open_fields("fields", fields)
    if filters is not None:
        filter_fields = maker.open_fields("filters", filters)
    else:
        items = visible_fields.items()
        filter_fields = {n: f for n, f in items if f.kind is not FieldKind.OTHER}
    for name in field_permissions.keys() - visible_fields.keys() - filter_fields.keys():
        raise RegistrationError(
            f"{owner}: permissions names {name!r}, which is neither in fields nor in"
            " filters."
        )
    permission, text = options.get("permission"), options.get("text")
    if permission is None:
        codename = get_permission_codename("view", opened._meta)
        permission = f"{opened._meta.app_label}.{codename}"
    texts = [n for n, f in visible_fields.items() if f.kind is FieldKind.TEXT]
    texts = [each for each in texts if not is_secret_name(each, opened)]
    naming = [n for n in texts if _names_rows(visible_fields[n].source)]
    if text is not None and text not in texts:
        raise RegistrationError(
            f"{owner}: text is {text!r}. It must be a text among the fields, and no"
            f" secret, such as {texts[:1] or ['name']!r}."
        )
    watch = tuple(options.get("watch", ()))
    events = frozenset(options.get("events", ()))
    open_fields = {**filter_fields, **visible_fields}
    for problem in _event_problems(opened, rows, events, watch, open_fields):
        raise RegistrationError(f"{owner}: {problem}")
    return OpenModel(
        model=opened,
        fields=visible_fields,
        filters=filter_fields,
        rows=rows,
        permission=permission,
        title=options.get("title")
        or str(opened._meta.verbose_name_plural).capitalize(),
        text=text or next(iter(naming), ""),
        scope=options.get("scope") or _scope_words(rows),
        events=events,
        watch=watch,
    )


def _event_problems(
    model: type[Model],
    rows: Rows,
    events: Container[str],
    watch: Sequence[str],
    open_fields: Mapping[str, OpenField],
) -> Iterator[str]:
    """Yield why changes of rows cannot be events."""
    if "deleted" in events:
        hides = type(model._default_manager).get_queryset is not Manager.get_queryset
        if rows != ALL or hides:
            why = "its manager chooses rows" if rows == ALL else "rows is a function"
            yield (
                f'events has "deleted", but {why}: of a row that is gone nobody can ask'
                " who may see it. Leave it out."
            )
    columns = {*model._meta.concrete_fields}
    for name in watch:
        if name not in open_fields or open_fields[name].source not in columns:
            yield f"watch has {name!r}, which is no column among fields and filters."
    if watch and "changed" not in events:
        yield f'watch is {watch!r}, but events has no "changed". Add it.'


def _names_rows(column: AnyField) -> bool:
    """Whether a text may stand for a row by default: it is short and never blank."""
    is_line = isinstance(column, models.CharField)
    return is_line and not column.blank and (column.max_length or 0) <= LINE_LENGTH


def _scope_words(rows: Rows) -> Label:
    """Return whose rows these are, in words: the docstring's first line, if any."""
    if not callable(rows):
        return _("rows of everybody")
    lines = (inspect.getdoc(rows) or "").splitlines()
    return lines[0].rstrip(".") if lines else _("only rows that the caller may see")


def _checked_model(model: object) -> type[Model]:
    if not (isinstance(model, type) and issubclass(model, Model)):
        raise RegistrationError(
            f"open_model got {model!r}. It must be a Django model, such as Order."
        )
    options = model._meta
    if options.abstract or options.swapped:
        why = "abstract" if options.abstract else f"swapped for {options.swapped}"
        raise RegistrationError(f"{options.label} is {why}, so it has no rows.")
    if options.app_label == "mcp_app" or issubclass(model, AbstractBaseSession):
        raise RegistrationError(
            f"{options.label} cannot be opened: its rows let others in."
        )
    if not hasattr(options.pk, "attname") or hasattr(options.pk, "field_names"):
        raise RegistrationError(
            f"{options.label} cannot be opened: its primary key has several columns."
        )
    if is_secret_name(options.pk.name, model):
        raise RegistrationError(
            f"{options.label} cannot be opened: the key of its rows, {options.pk.name},"
            " is a secret."
        )
    return model


@dataclass(frozen=True)
class _FieldMaker:
    model: type[Model]
    permissions: Mapping[str, str]

    def open_fields(self, argument: str, names: object) -> Mapping[str, OpenField]:
        if not isinstance(names, Sequence) or isinstance(names, str) or not names:
            raise RegistrationError(
                f"{self.model._meta.label}: {argument} is {names!r}. It must be a list"
                ' of names of fields, such as ["number", "state"].'
            )
        return {str(name): self._open_field(argument, name) for name in names}

    @cached_property
    def _sources_by_name(self) -> Mapping[str, AnyField]:
        sources: dict[str, AnyField] = {}
        fields: Any = self.model._meta.get_fields(include_hidden=False)
        for each in fields:
            reverse = isinstance(each, ForeignObjectRel)
            sources[str(each.get_accessor_name() if reverse else each.name)] = each
        return sources

    def _open_field(self, argument: str, name: object) -> OpenField:
        source = self._find_source(argument, name)
        # The name may be that of a foreign key's column, such as “customer_id”.
        if name != source.name and name == getattr(source, "attname", None):
            kind = FieldKind.KEY
        elif source.is_relation:
            kind = self._relation_kind(argument, str(name), source)
        else:
            kind = self._column_kind(argument, str(name), source)
        if argument == "filters" and kind is FieldKind.OTHER:
            why = f"nobody can ask by a {type(source).__name__}"
            raise self._field_error(argument, name, why)
        return OpenField(str(name), kind, source, self.permissions.get(str(name), ""))

    def _find_source(self, argument: str, name: object) -> AnyField:
        if (source := self._sources_by_name.get(str(name))) is not None:
            return source
        for each in self._sources_by_name.values():
            if isinstance(each, RelatedField) and name == getattr(each, "attname", ""):
                return each
        close = get_close_matches(str(name), self._sources_by_name, 1)
        meant = f" Did you mean {close[0]!r}?" if close else ""
        is_attribute = isinstance(name, str) and hasattr(self.model, name)
        problem = "is no column and no relation" if is_attribute else "does not exist"
        label = self.model._meta.label
        raise RegistrationError(
            f"{label}: {argument} names {name!r}, which {problem}.{meant}"
        )

    def _relation_kind(self, argument: str, name: str, source: AnyField) -> FieldKind:
        reverse = isinstance(source, ForeignObjectRel)
        if source.many_to_many:
            relation = source.remote_field if reverse else source
            through = relation.remote_field.through
            if not through._meta.auto_created:
                why = f"open its model {through._meta.label}, which may have rules"
                raise self._field_error(argument, name, f"{why} for its rows, instead")
            return FieldKind.TO_MANY
        if not reverse and not source.concrete:
            why = "a generic relation cannot be opened"
            raise self._field_error(argument, name, why)
        is_to_one = source.one_to_one or not reverse
        return FieldKind.TO_ONE if is_to_one else FieldKind.TO_MANY

    def _column_kind(self, argument: str, name: str, source: AnyField) -> FieldKind:
        if issubclass(self.model, get_user_model()) and name == "password":
            raise self._field_error(argument, name, "passwords cannot be opened")
        kinds = (_KINDS[each] for each in type(source).__mro__ if each in _KINDS)
        kind = next(kinds, None)
        if kind is None:
            why = f"a {type(source).__name__} has no form in JSON"
            raise self._field_error(argument, name, why)
        if source.primary_key:
            return FieldKind.KEY
        return FieldKind.CHOICE if source.choices and kind in _CHOOSING else kind

    def _field_error(self, argument: str, name: object, why: str) -> RegistrationError:
        label = self.model._meta.label
        return RegistrationError(f"{label}: {argument} names {name!r}, but {why}.")


def connect_row_events(opened: OpenModels, cause: Callable[[], str]) -> None:
    """Record changes of rows from now on; `cause` returns who made the current call."""
    for each in opened.values():
        if each.events:
            concrete: Any = each.model._meta.concrete_model
            watch = {name: each.all_fields[name].source for name in each.watch}
            RowEvents(each.topic, concrete, each.events, watch, cause).connect()


def missing_targets(
    opened: OpenModels, wanted: Container[str]
) -> Iterator[tuple[str, str]]:
    """Yield a sentence and the model's label for each relation to an unopened model.

    This can be checked only after all modules are loaded.
    """
    for each in opened.values():
        for name, part in each.all_fields.items():
            if part.is_relation and part.target_model._meta.label not in wanted:
                target = part.target_model._meta.label
                yield (
                    f"{each.label} opens {name!r}, which leads to {target}, but no code"
                    f" opens {target}. Open it, too, or leave {name!r} out.",
                    each.label,
                )


def rows_of_everybody(opened: OpenModels) -> Iterator[tuple[OpenModel, OpenModel, str]]:
    """Yield models that show all rows but refer to a model that shows only some.

    The third member is the lookup over foreign keys, opened or not: "order__customer".
    """
    limited = {each.model: each for each in opened.values() if each.per_caller}
    for each in opened.values():
        if not each.per_caller:
            for way, target in _ways_over_keys(each.model):
                if target in limited:
                    yield each, limited[target], way


def _ways_over_keys(
    model: type[Model], steps: int = 3
) -> Iterator[tuple[str, type[Model]]]:
    """Yield the lookups over at most `steps` foreign keys, each with its target."""
    for key in model._meta.concrete_fields if steps else ():
        if isinstance(target := key.related_model, type):
            yield key.name, target
            for way, further in _ways_over_keys(target, steps - 1):
                yield f"{key.name}__{way}", further


def exposure_advice(opened: OpenModels) -> Iterator[str]:
    """Yield a sentence for each field that may reveal more than its developer wants."""
    for each in opened.values():
        for name in each.filters.keys() - each.fields.keys():
            yield (
                f"{each.label}: {name!r} is in filters and not in fields. Nobody sees"
                " it, but who asks often enough can guess its values."
            )
        for name in each.all_fields:
            if is_secret_name(name, each.model):
                yield f"{each.label}: {name!r} sounds like a secret, and it is opened."
