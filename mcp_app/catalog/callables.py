"""Functions of user code: their parameters, and how they are run."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_type_hints

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import ValidationError

from mcp_app.catalog.findings import qualified_name
from mcp_app.catalog.type_hints import (
    Annotation,
    Documentation,
    documentation,
    is_kind,
    or_none,
    union_members,
)
from mcp_app.interface.context import Context, SyncContext
from mcp_app.interface.errors import RegistrationError
from mcp_app.interface.principal import AccessRequest, Judge, Rule

if TYPE_CHECKING:
    from mcp_app.catalog.bindings import Binding

if sys.version_info >= (3, 14):
    from annotationlib import Format

    # Names that a module imports only for type checkers are read with `_CONTEXTS`.
    _signature_of = partial(inspect.signature, annotation_format=Format.FORWARDREF)
else:
    _signature_of = inspect.signature

Function: TypeAlias = Callable[..., object]

MISSING = inspect.Parameter.empty
"""No annotation, or no default."""

# A module may import these for type checkers alone.
_CONTEXTS: Mapping[str, object] = {
    "Context": Context,
    "SyncContext": SyncContext,
    "mcp_app": SimpleNamespace(Context=Context, SyncContext=SyncContext),
}
_FACES = {"async": Context, "sync": SyncContext}
"""The Context class that functions of each style take."""
_VALUES = (list, tuple, dict, set, int, float, bytes)
"""An annotation of these classes is a mistake, such as `[str]` for `list[str]`."""
_WIDE = (Any, None, type(None), object)
"""Hints that allow None already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter that a client fills."""

    name: str
    annotation: Annotation = MISSING
    default: object = MISSING
    positional_only: bool = False

    @property
    def is_required(self) -> bool:
        return self.default is MISSING


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """A function, and what its code tells of it.

    `context` names the parameter that takes the Context; it is not among the
    `parameters`.  `run` takes all parameters by keyword.
    """

    function: Function
    name: str
    qualified_name: str
    style: Literal["async", "sync"]
    documentation: Documentation
    parameters: tuple[Parameter, ...]
    context: str | None
    returns: Annotation
    run: Function


def inspect_function(function: Function) -> Inspection:
    """Read a function; raise `RegistrationError` for one that cannot be served."""
    layers = list(layers_of(function))
    innermost = layers[-1]
    module = getattr(innermost, "__module__", None) or type(innermost).__module__
    qualified = getattr(innermost, "__qualname__", type(innermost).__qualname__)
    name = f"{module}.{qualified}"
    _check_layers(name, layers)
    style: Literal["async", "sync"] = (
        "async" if any(iscoroutinefunction(layer) for layer in layers) else "sync"
    )
    try:
        signature = _signature_of(function)
    except (TypeError, ValueError) as error:
        raise RegistrationError(f"{name} has no readable signature: {error}.") from None
    hints = _Hints(name, innermost)
    parameters = [_parameter(name, p, hints) for p in signature.parameters.values()]
    context = _context_parameter(name, style, parameters)
    # A partial's own docstring is that of `functools.partial`.
    documented = next(each for each in layers if not isinstance(each, partial))
    return Inspection(
        function=function,
        name=getattr(innermost, "__name__", name),
        qualified_name=name,
        style=style,
        documentation=documentation(inspect.getdoc(documented)),
        parameters=tuple(p for p in parameters if p.name != context),
        context=context,
        returns=hints.resolve_hint("the return value", signature.return_annotation),
        run=_by_keyword(function, parameters),
    )


def layers_of(function: object) -> Iterator[object]:
    """Yield the function, then what is inside of partials, wrappers and methods."""
    inner: object | None = function
    while inner is not None:
        yield inner
        inner = _inner_layer(inner)


def _inner_layer(layer: object) -> object | None:
    if isinstance(layer, partial):
        return layer.func
    for attribute in ("__func__", "__wrapped__"):
        if hasattr(layer, attribute):
            return getattr(layer, attribute)  # type: ignore[no-any-return]
    called = getattr(type(layer), "__call__", None)  # noqa: B004 - the method itself
    return called if inspect.isfunction(called) else None


def _check_layers(name: str, layers: list[object]) -> None:
    if not callable(layers[0]) or inspect.isclass(layers[0]):
        raise RegistrationError(
            f"{name} is not a function. Write the decorator above a def."
        )
    if any(
        inspect.isgeneratorfunction(layer) or inspect.isasyncgenfunction(layer)
        for layer in layers
    ):
        raise RegistrationError(
            f"{name} is a generator. Return the whole result, and report progress"
            " with ctx.progress()."
        )


class _Hints:
    """Resolves the hints of a function by the names that its module has."""

    def __init__(self, owner: str, innermost: object) -> None:
        self._owner = owner
        self._names = {**_CONTEXTS, **getattr(innermost, "__globals__", {})}

    def resolve_hint(self, where: str, annotation: Annotation) -> Annotation:
        if annotation is MISSING or type(annotation) is type:
            return annotation

        if isinstance(annotation, _VALUES):
            text, meant = repr(annotation), type(annotation).__name__
            if isinstance(annotation, list):
                text = f"[{', '.join(map(inspect.formatannotation, annotation))}]"
                meant = f"list{text}" if len(annotation) == 1 else meant
            raise RegistrationError(
                f"{self._owner}: the annotation {text} of {where} is a value, not a"
                f" type. Write {meant}."
            )

        # `get_type_hints` reads hints only from an object with annotations.
        def annotation_holder() -> None: ...

        annotation_holder.__annotations__ = {"it": annotation}
        try:
            hints = get_type_hints(annotation_holder, self._names, include_extras=True)
        except Exception as error:
            lacking = getattr(error, "name", None)
            advice = f" Import {lacking}, and not under TYPE_CHECKING alone."
            raise RegistrationError(
                f"{self._owner}: the annotation {annotation!r} of {where} must be "
                f"readable when the function is registered: {error}."
                f"{advice if lacking else ''}"
            ) from None
        return hints["it"]


def _parameter(owner: str, parameter: inspect.Parameter, hints: _Hints) -> Parameter:
    if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
        hint = parameter.annotation
        hint_text = hint if isinstance(hint, str) else inspect.formatannotation(hint)
        one = "str" if hint is MISSING else hint_text
        is_args = parameter.kind is parameter.VAR_POSITIONAL
        many = f"list[{one}]" if is_args else f"dict[str, {one}]"
        raise RegistrationError(
            f"{owner} takes {parameter}, but clients must know each parameter by name."
            f" Write {parameter.name}: {many}."
        )
    annotation = hints.resolve_hint(f"parameter {parameter.name}", parameter.annotation)
    if parameter.name in {"self", "cls"} and annotation is MISSING:
        raise RegistrationError(
            f"{owner} takes {parameter.name}. Register a bound method of an object"
            " instead."
        )
    if parameter.default is None and _lacks_none(annotation):
        annotation = or_none(annotation)
    return Parameter(
        name=parameter.name,
        annotation=annotation,
        default=parameter.default,
        positional_only=parameter.kind is parameter.POSITIONAL_ONLY,
    )


def _lacks_none(annotation: Annotation) -> bool:
    """Whether a hint does not allow the default None, as in `limit: int = None`."""
    return annotation is not MISSING and not any(
        member in _WIDE or _context_face(member) is not None
        for member in union_members(annotation)
    )


def _context_face(annotation: Annotation) -> type | None:
    return next((face for face in _FACES.values() if is_kind(annotation, face)), None)


def _context_parameter(
    owner: str, style: Literal["async", "sync"], parameters: list[Parameter]
) -> str | None:
    contexts = {}
    for parameter in parameters:
        faces = set(map(_context_face, union_members(parameter.annotation))) - {None}
        if faces:
            contexts[parameter.name] = faces
    if len(contexts) > 1:
        raise RegistrationError(
            f"{owner} takes the context twice: {', '.join(contexts)}."
        )
    wanted, other = _FACES[style], _FACES["sync" if style == "async" else "async"]
    for name, faces in contexts.items():
        if wanted not in faces:
            raise RegistrationError(
                f"{owner} is {'an' if style == 'async' else 'a'} {style} function, so "
                f"its parameter {name} must be annotated with {wanted.__name__}, not "
                f"with {other.__name__}."
            )
    return next(iter(contexts), None)


def _by_keyword(function: Function, parameters: list[Parameter]) -> Function:
    positional = [p for p in parameters if p.positional_only]
    if not positional:
        return function

    @wraps(function)
    def by_keyword(**arguments: object) -> object:
        leading = [arguments.pop(p.name, p.default) for p in positional]
        return function(*leading, **arguments)

    return by_keyword


# -- rule functions --------------------------------------------------------------------
# Rules: functions of the site that say who may use what.


def build_rule(function: Judge, key: str = "", *, arguments: bool = False) -> Rule:
    """Return a function as a rule; by default its key is its own name.

    Raises `RegistrationError` if it cannot be called as a rule.
    """
    name = qualified_name(function)
    inner: object = function
    while isinstance(inner, partial):
        inner = inner.func
    called = getattr(type(inner), "__call__", None)  # noqa: B004 - the method itself
    # A coroutine object is always true: an async rule would let everybody in.
    if any(map(inspect.iscoroutinefunction, (inner, called))):
        raise RegistrationError(
            f"{name}: a rule runs in a thread. Write it with def, not async def."
        )
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        raise RegistrationError(
            f"{name}: a rule must take one argument, the access request, as in def"
            " may_refund(request: AccessRequest) -> bool."
        ) from None
    return Rule(key or name, function, arguments)


def object_rule(owner: str, binding: Binding | None, permission: str) -> Rule:
    """Return the rule that the user has a permission for the instance that is read.

    Raises `RegistrationError` if the variables of the URI cannot find the instance.
    """
    if binding is None or binding.template is None:
        raise RegistrationError(
            f"{owner}: object_permission checks a model instance, so it works only on a"
            " resource template. Add the option “model”, and a URI with variables."
        )
    names, model = binding.template.variables, binding.model
    fields = {field.name for field in model._meta.concrete_fields} | {"pk"}
    for name in names:
        if name not in fields:
            raise RegistrationError(
                f"{owner}: object_permission cannot find the instance, because"
                f" {name!r} is not a column of {model._meta.label}."
            )

    def judge_instance(request: AccessRequest) -> bool:
        if request.arguments is None:
            return True  # A list is made: no instance is read yet.
        values = {name: request.arguments.get(name) for name in names}
        try:
            # A second row shows that the values name no single instance.
            rows = list(model._default_manager.filter(**values)[:2])
        except (TypeError, ValueError, ValidationError):
            # The text cannot be a value of the column.
            return False
        has = getattr(request.user, "has_perm", None)
        return len(rows) == 1 and has is not None and bool(has(permission, rows[0]))

    judge_instance.__module__ = owner
    judge_instance.__qualname__ = f"{permission} of {model._meta.label}"
    key = f"{permission} of {binding.uri}"
    return Rule(key, judge_instance, arguments=True, object=True)
