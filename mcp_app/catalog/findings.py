"""What lint says: a sentence, how serious it is, and the column that it is about."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import Enum
from functools import cache, partial, wraps
from types import CodeType, FrameType, MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    ParamSpec,
    TypeAlias,
    TypeVar,
    cast,
    get_type_hints,
)

from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from pydantic import TypeAdapter, ValidationError

from mcp_app.catalog.type_hints import Annotation
from mcp_app.interface.errors import RegistrationError

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


class Level(Enum):
    """How serious a finding is."""

    MUST_FIX = "must-fix"
    ADVICE = "advice"

    @property
    def label(self) -> _StrPromise:
        if self is Level.MUST_FIX:
            return _("Must be fixed before publishing")
        return _("Advice")


@dataclass(frozen=True, slots=True)
class Finding:
    """What lint found; `rule` is a key of RULES, `field` a column, or "" for the whole.

    The message is in the language that was active when it was found.
    """

    level: Level
    rule: str
    field: str
    message: str

    def as_advice(self) -> Finding:
        """Return the same finding as advice, if it must not prevent publishing."""
        return replace(self, level=Level.ADVICE)


def must_fix(rule: str, field: str, message: str) -> Finding:
    return Finding(Level.MUST_FIX, rule, field, message)


def advice(rule: str, field: str, message: str) -> Finding:
    return Finding(Level.ADVICE, rule, field, message)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with the worst first, otherwise in the given order."""
    return sorted(findings, key=lambda each: each.level is Level.ADVICE)


RULES: Mapping[str, int] = MappingProxyType(
    {
        "kind": 101,
        "name-not-allowed": 102,
        "name-refused": 103,
        "uri-not-allowed": 104,
        "hidden-character": 105,
        "description-missing": 106,
        "description-repeats-name": 107,
        "description-long": 108,
        "planted-order": 109,
        "changes-unsaid": 110,
        "deleting-unsaid": 111,
        "hints-contradict": 112,
        "hints-doubtful": 113,
        "schema-refused": 114,
        "schema-choice-at-top": 115,
        "pattern-slow": 116,
        "keyword-misspelt": 117,
        "required-unknown": 118,
        "parameter-unused": 119,
        "parameter-description-missing": 120,
        "parameter-type-missing": 121,
        "parameter-name-refused": 122,
        "argument-description-missing": 123,
        "media-type-missing": 124,
        "tokens-many": 125,
        "tools-many": 126,
        "tokens-many-in-all": 127,
        "twice": 128,
        "description-twice": 129,
        "instructions-long": 130,
        "suggestions-unused": 131,
        "header-underscore": 132,
        "uri-of-the-web": 133,
        "page-too-small": 134,
        "schema-recursive": 135,
        "shared-key": 137,
        "row-not-unique": 138,
        "form-url": 139,
        "moment-unsaid": 140,
        "event-large": 141,
        "event-argument-undescribed": 142,
        "braces-single": 143,
        "skill-value": 148,
        "app-unknown": 154,
        "app-hidden": 155,
        "app-foreign": 156,
        "app-frames": 157,
        "app-broken": 158,
        "approval-missing": 160,
        "approval-without-user": 161,
        "title-missing": 162,
        "outside-unsaid": 163,
        "card-thin": 164,
        "parameter-refused": 165,
    }
)
"""All rules, with their numbers in the ids of system checks; never reuse a number."""


def count_text(number: int) -> str:
    """Return a number as the active language writes it."""
    return str(number_format(number, force_grouping=True))


# -- problems --------------------------------------------------------------------------
# Declarations that cannot be served, with their places.
#
# While `collecting` runs, a decorator that refuses a function records one sentence and
# returns the function unchanged, so that the module goes on.  At any other time it
# raises `RegistrationError`.

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")

_PACKAGE: Final = __name__.partition(".")[0]
_USAGE: Final = {
    "tool": '@mcp.tool or @mcp.tool("name")',
    "prompt": '@mcp.prompt or @mcp.prompt("name")',
    "resource": '@mcp.resource("shop://orders/{number}")',
    "complete": '@mcp.complete("prompt", "argument")',
    "function": '@mcp.function("key")',
    "rule": '@mcp.rule("key")',
    "app": 'mcp.app("ui://shop/orders", template="shop/orders.html")',
    "event": '@mcp.event("order.paid")',
    "skills": 'mcp.skills("skills", prefix="shop")',
    "open_model": 'mcp.open_model(Order, fields=["number", "state"], rows="all")',
    "model_tools": "mcp.model_tools(Order)",
    "admin_tools": "mcp.admin_tools(change=[Order])",
    "openapi": "mcp.openapi(api.get_openapi_schema)",
    "rest": "mcp.rest(OrderViewSet)",
}


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line in a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


Problems: TypeAlias = dict[str, Place]
"""The place of each problem, by its sentence."""

_collecting: ContextVar[Problems | None] = ContextVar("collecting", default=None)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where something is declared, and which import of the module declared it."""

    place: Place
    load: CodeType | None

    def is_same_load(self, other: Origin) -> bool:
        """Whether one import of a module declares both; a reload is another import."""
        return self.load is not None and self.load is other.load


@contextmanager
def collecting(problems: Problems) -> Iterator[None]:
    """Let decorators add problems to these inside the block, instead of raising."""
    token = _collecting.set(problems)
    try:
        yield
    finally:
        _collecting.reset(token)


def record_problem(problems: Problems, place: Place, sentence: str) -> None:
    """Keep a problem as one line that begins with its place."""
    problems[f"{place}: {' '.join(sentence.split())}"] = place


def origin_of(module: str) -> Origin:
    """Return the origin of what code is declaring now, for a function of `module`."""
    loads = (
        frame.f_code
        for frame in _calling_frames()
        # Each import of a module makes a new code object.
        if frame.f_code.co_name == "<module>" and _module_name(frame) == module
    )
    return Origin(_calling_place(), next(loads, None))


def calling_module() -> str:
    """Return the name of the module whose code is calling the registry."""
    return _module_name(_calling_frame())


def _calling_place() -> Place:
    frame = _calling_frame()
    return Place(frame.f_code.co_filename, frame.f_lineno)


def _calling_frame() -> FrameType:
    for frame in _calling_frames():
        if _module_name(frame).partition(".")[0] != _PACKAGE:
            break
    return frame


def recording(method: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
    """Let a decorator of a registry record its errors while `collecting` runs."""
    signature = inspect.signature(method)

    @wraps(method)
    def decorator(*arguments: Arguments.args, **options: Arguments.kwargs) -> Any:
        problems: Problems = cast("Any", arguments[0]).problems
        # `@mcp.tool` without brackets gets the function itself, after the registry.
        with_function = len(arguments) > 1 and callable(arguments[1])
        try:
            _check_count(signature, method.__name__, arguments)
            declare = method(*arguments, **options)
        except Exception as error:
            if all(isinstance(argument, str) for argument in arguments[1:]):
                # There are only texts yet: the sentence must name the function, too.
                collected = _collectable_error(problems, error)
                return _recording_decorator(
                    problems, partial(_raise_for_function, collected)
                )
            _refuse_function(problems, error, arguments[1])
            return arguments[1] if with_function else lambda function: function
        return declare if with_function else _recording_decorator(problems, declare)

    return decorator


def recording_call(method: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Do the same as `recording` for a method that is no decorator."""
    signature = inspect.signature(method)

    @wraps(method)
    def call(*arguments: Arguments.args, **options: Arguments.kwargs) -> None:
        problems: Problems = cast("Any", arguments[0]).problems
        try:
            _check_count(signature, method.__name__, arguments)
            method(*arguments, **options)
        except Exception as error:
            _refuse_function(problems, error, arguments[-1])

    return call


def _check_count(
    signature: inspect.Signature, decorator: str, arguments: tuple[object, ...]
) -> None:
    try:
        signature.bind(*arguments)
    except TypeError:
        got = ", ".join(map(_value_text, arguments[1:])) or "nothing"
        raise RegistrationError(
            f"{_method_text(decorator)} got {got}. Write it like {_USAGE[decorator]}."
        ) from None


def _method_text(name: str) -> str:
    """Return a method as code writes it: `mcp.app`, or `@mcp.tool` for a decorator."""
    return f"{'@' if _USAGE[name].startswith('@') else ''}mcp.{name}"


def check_text(value: object, decorator: str, what: str) -> None:
    """Raise if the first argument is no text, as in a decorator without brackets."""
    if not isinstance(value, str):
        raise RegistrationError(
            f"@mcp.{decorator} got {_value_text(value)}. It takes a {what}, as in"
            f" {_USAGE[decorator]}."
        )


def _value_text(value: object) -> str:
    has_name = callable(value) and hasattr(value, "__qualname__")
    return qualified_name(value) if has_name else repr(value)


def qualified_name(function: object) -> str:
    """Return the name by which a reader finds a function in the code."""
    module = getattr(function, "__module__", "")
    return f"{module}.{getattr(function, '__qualname__', repr(function))}"


def _recording_decorator(problems: Problems, declare: Any) -> Callable[[Any], Any]:
    def decorate_function(function: Any) -> Any:
        try:
            return declare(function)
        except Exception as error:
            _refuse_function(problems, error, function)
            return function

    return decorate_function


def _refuse_function(problems: Problems, error: Exception, function: object) -> None:
    sentence = str(_collectable_error(problems, error))
    if not isinstance(error, RegistrationError):
        why = f"{type(error).__name__}: {error}"
        sentence = f"{_value_text(function):.80} cannot be served: {why}."
    record_problem(problems, _calling_place(), sentence)


def _collectable_error(problems: Problems, error: Exception) -> Exception:
    """Return the error if `collecting` records these problems now, else raise it."""
    if _collecting.get() is not problems:
        raise error
    return error


def _raise_for_function(error: Exception, function: object) -> None:
    raise RegistrationError(f"{_value_text(function)}: {error}")


def _calling_frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module_name(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


# -- options ---------------------------------------------------------------------------
# The options of decorators are checked against the types that they accept.


def check_options(
    owner: str, decorator: str, accepted: type, options: Mapping[str, Any]
) -> None:
    """Raise `RegistrationError` for an option that the TypedDict `accepted` refuses.

    Without this check, one wrong value would later break lists for all clients.
    """
    problems = [
        problem
        for name, value in options.items()
        for problem in _option_problems(decorator, name, value, _hints(accepted))
    ]
    if problems:
        raise RegistrationError(f"{owner}: {' '.join(problems)}")


def _option_problems(
    decorator: str, name: str, value: object, hints: Mapping[str, Annotation]
) -> Iterator[str]:
    if name not in hints:
        names = ", ".join(_nearest_first(name, hints))
        yield f"{_method_text(decorator)} has no option {name!r}. It has {names}."
    elif name in _LISTS and isinstance(value, str):
        yield f"The option {name} is {value!r}: write a list."
    elif not (isinstance(value, Promise) and name in _TRANSLATED):
        try:
            _adapter(hints[name]).validate_python(value, strict=True)
        except ValidationError as error:
            # Each member of a union reports a problem: one sentence is enough.
            problem = error.errors()[0]["msg"].replace("Input should be", "it must be")
            yield f"The option {name} is {value!r:.80}: {problem}."


def _nearest_first(name: str, options: Iterable[str]) -> list[str]:
    def name_likeness(option: str) -> float:
        plain, other = name.replace("_", ""), option.replace("_", "")
        return SequenceMatcher(None, plain, other).ratio()

    return sorted(options, key=name_likeness, reverse=True)


_hints = cache(get_type_hints)
_adapter = cache(TypeAdapter)

_LISTS = frozenset(
    {"change", "fields", "filters", "groups", "icons", "only", "search", "tags"}
    | {"events", "watch"}
)
"""Options that take a list, for which a string would pass as a sequence."""
_TRANSLATED = frozenset({"title", "description"})
