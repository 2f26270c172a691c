"""Paths: `customer.country.name`, from an open model over relations to a field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, Literal, NamedTuple, TypeAlias

from mcp_app.catalog.open_models import FieldKind, OpenField, OpenModel, OpenModels
from mcp_app.kinds.kind import KindError

MOST_STEPS: Final = 3

Use: TypeAlias = Literal["fields", "filters"]
"""Whether a path names what is shown, or what is asked by."""


class Hop(NamedTuple):
    """A step to another model: the relation, and the open model that it leads to."""

    field: OpenField
    model: OpenModel


@dataclass(frozen=True)
class Path:
    """A field, and the hops on the way to it from `model`."""

    text: str
    model: OpenModel
    hops: tuple[Hop, ...]
    field: OpenField

    @property
    def name(self) -> str:
        """The path as one name: `customer_country_name`."""
        return self.text.replace(".", "_")

    @property
    def owner(self) -> OpenModel:
        """The open model that has the field."""
        return self.hops[-1].model if self.hops else self.model

    @property
    def models(self) -> Iterator[OpenModel]:
        """Every open model that is named, also by a relation that is shown itself."""
        yield self.model
        yield from (hop.model for hop in self.hops)

    @property
    def permissions(self) -> Iterator[str]:
        """What whoever uses the path must be allowed."""
        for each in self.models:
            yield each.permission
        for field in (*(hop.field for hop in self.hops), self.field):
            yield field.permission

    @property
    def is_relation(self) -> bool:
        """Whether it ends at a relation, which is its last hop, too."""
        return bool(self.hops) and self.hops[-1].field is self.field

    def behind(self, hops: tuple[Hop, ...]) -> Path:
        """Return the same path from where these hops begin."""
        return Path(self.text, self.model, (*hops, *self.hops), self.field)

    @property
    def nullable(self) -> bool:
        """Whether its value may be null."""
        return bool(self.hops) or self.field.nullable


def resolve(text: object, model: OpenModel, opened: OpenModels, use: Use) -> Path:
    """Return the path that a text names; raise `KindError` if there is none.

    A relation at its end stands for its key, and is a hop of its own, too: see
    `with_relation`.
    """
    names = text.split(".") if isinstance(text, str) else []
    if not names or len(names) > MOST_STEPS or not all(names):
        raise KindError(
            f"“{text}” is no path. Write up to {MOST_STEPS} names of fields with dots"
            " between them, such as customer.country.name."
        )
    hops: list[Hop] = []
    here = model
    for name in names[:-1]:
        relation = _field(name, here, use)
        if relation.kind is not FieldKind.TO_ONE:
            raise KindError(
                f"“{text}”: {name} of {here.label} is a {relation.kind.value}, and a"
                " path goes on only over relations to one."
            )
        here = target(relation, opened)
        hops.append(Hop(relation, here))
    return Path(".".join(names), model, tuple(hops), _field(names[-1], here, use))


def target(relation: OpenField, opened: OpenModels) -> OpenModel:
    """Return the open model that a relation leads to."""
    label = relation.target._meta.label
    if label not in opened:
        raise KindError(f"“{relation.name}” leads to {label}, which no code opens.")
    return opened[label]


def with_relation(path: Path, opened: OpenModels) -> Path:
    """Return a path to a relation with the relation as its last hop."""
    hop = Hop(path.field, target(path.field, opened))
    return Path(path.text, path.model, (*path.hops, hop), path.field)


def _field(name: str, model: OpenModel, use: Use) -> OpenField:
    named = model.fields if use == "fields" else model.filters
    if name in named:
        return named[name]
    close = get_close_matches(name, named, 1)
    meant = f" Did you mean “{close[0]}”?" if close else ""
    verb = "shown" if use == "fields" else "asked by"
    raise KindError(
        f"“{name}” of {model.label} cannot be {verb}: no code opens it for that.{meant}"
    )
