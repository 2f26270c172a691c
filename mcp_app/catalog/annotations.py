"""Type hints taken apart."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from functools import reduce
from operator import or_
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import typing_extensions

from mcp_app.catalog.errors import RegistrationError

Annotation: TypeAlias = Any
"""What stands behind a colon or an arrow, with its strings resolved."""

typed_dict = cast(
    "Callable[[str, dict[str, Annotation]], type]", vars(typing_extensions)["TypedDict"]
)
"""Make a TypedDict of members that are known only now."""

NEEDS_EXTENSIONS = sys.version_info < (3, 12)
"""Whether pydantic refuses `typing.TypedDict`, which lacks what it must know."""


def origin(annotation: Annotation) -> Annotation:
    """Return what stands before the brackets, None where there are none."""
    return get_origin(annotation)


def bare(annotation: Annotation) -> Annotation:
    """Return what `Annotated` and `type` aliases stand around."""
    if origin(annotation) is Annotated:
        return bare(get_args(annotation)[0])
    if isinstance(annotation, typing_extensions.TypeAliasType):
        return bare(annotation.__value__)
    return annotation


def metadata(annotation: Annotation) -> tuple[object, ...]:
    """Return what `Annotated` adds, without that of its members."""
    if origin(annotation) is Annotated:
        return tuple(annotation.__metadata__)
    return ()


def without_metadata(annotation: Annotation) -> Annotation:
    """Return the hint without what `Annotated` adds to it, not to its members."""
    return get_args(annotation)[0] if metadata(annotation) else annotation


def without_none(annotation: Annotation) -> Annotation:
    """Return a union without its None."""
    kept = [each for each in members(annotation) if each is not type(None)]
    return reduce(or_, kept) if kept else annotation


def or_none(annotation: Annotation) -> Annotation:
    """Return the hint or None, with `Annotated` still around it."""
    widened = without_metadata(annotation) | None
    extras = metadata(annotation)
    return Annotated[(widened, *extras)] if extras else widened


def members(annotation: Annotation) -> Iterator[Annotation]:
    """Yield the members of a union, bare; any other hint is its own member."""
    inner = bare(annotation)
    if origin(inner) in {Union, types.UnionType}:
        for argument in get_args(inner):
            yield from members(argument)
    else:
        yield inner


def is_kind(annotation: Annotation, *kinds: type) -> bool:
    """Whether the hint is one of the classes, or a subclass."""
    return isinstance(annotation, type) and issubclass(
        origin(annotation) or annotation, kinds
    )


def for_pydantic(annotation: Annotation) -> Annotation:
    """Return the hint in a form that pydantic reads on every version of Python."""
    if not NEEDS_EXTENSIONS:
        return annotation
    try:
        return _with_extensions(annotation)
    except RecursionError:
        raise RegistrationError(
            f"{annotation!r} contains itself. Before Python 3.12, import its"
            " TypedDict from typing_extensions."
        ) from None


def _with_extensions(annotation: Annotation) -> Annotation:
    if is_typeddict(annotation):
        return _rebuilt(annotation)
    arguments = get_args(annotation)
    if origin(annotation) is Literal or not arguments:
        return annotation
    changed = tuple(_with_extensions(argument) for argument in arguments)
    if all(new is old for new, old in zip(changed, arguments, strict=True)):
        return annotation
    return _with_arguments(annotation, changed)


def _with_arguments(
    annotation: Annotation, arguments: tuple[Annotation, ...]
) -> Annotation:
    outer = origin(annotation)
    if outer is Annotated:
        return Annotated[(arguments[0], *metadata(annotation))]
    if outer is types.UnionType:
        return reduce(or_, arguments)
    return outer[arguments]


def _rebuilt(declared: Annotation) -> type:
    hints = get_type_hints(declared, include_extras=True)
    rebuilt = typed_dict(
        declared.__name__,
        {
            name: _member(_with_extensions(hint), name in declared.__required_keys__)
            for name, hint in hints.items()
        },
    )
    for name in ("__doc__", "__module__", "__pydantic_config__"):
        if hasattr(declared, name):
            setattr(rebuilt, name, getattr(declared, name))
    return rebuilt


def _member(hint: Annotation, required: bool) -> Annotation:
    if origin(hint) in {Required, NotRequired}:
        return hint
    return Required[hint] if required else NotRequired[hint]
