from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, wraps
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, cast

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User

from mcp_app.catalog.bindings import Binding
from mcp_app.catalog.callables import (
    MISSING,
    Function,
    Parameter,
    build_rule,
    inspect_function,
    object_rule,
)
from mcp_app.catalog.findings import qualified_name
from mcp_app.interface import context as contexts
from mcp_app.interface.context import AnyContext
from mcp_app.interface.errors import RegistrationError
from mcp_app.interface.principal import AccessRequest, Principal
from mcp_app.protocol.uri_templates import UriTemplate

if TYPE_CHECKING:
    from nowhere import Nothing  # type: ignore[import-not-found]

    import mcp_app
    from mcp_app.interface.context import Context, SyncContext

HERE = __name__


def plain(a: int, /, b: str = "b", *, c: float = 1.5) -> tuple[int, str, float]:
    """Say what came."""
    return a, b, c


async def later(a: int) -> int:
    return a


class Shop:
    """A shop."""

    def order(self, number: int) -> str:
        """Find an order."""
        return f"{self} {number}"

    async def __call__(self, number: int) -> int:
        return number


def announced(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return wrapper


def names(function: Function) -> list[str]:
    return [parameter.name for parameter in inspect_function(function).parameters]


def test_a_plain_function() -> None:
    found = inspect_function(plain)
    assert found.name == "plain"
    assert found.qualified_name == f"{HERE}.plain"
    assert found.style == "sync"
    assert found.documentation.text == "Say what came."
    assert found.parameters == (
        Parameter(name="a", annotation=int, positional_only=True),
        Parameter(name="b", annotation=str, default="b"),
        Parameter(name="c", annotation=float, default=1.5),
    )
    assert found.context is None
    assert found.returns == tuple[int, str, float]


def test_positional_only_parameters_are_passed_by_keyword() -> None:
    def both(a: int, b: int = 2, /, c: int = 3) -> tuple[int, int, int]:
        return a, b, c

    run = inspect_function(both).run
    assert run(a=1) == (1, 2, 3)
    assert run(a=1, b=5, c=6) == (1, 5, 6)
    assert inspect_function(plain).run(a=1, c=2.0) == (1, "b", 2.0)


def test_the_function_itself_runs_where_it_can() -> None:
    assert inspect_function(later).run is later


@pytest.mark.parametrize(
    ("function", "name", "parameters", "style"),
    [
        (later, "later", ["a"], "async"),
        (announced(plain), "plain", ["a", "b", "c"], "sync"),
        (announced(later), "later", ["a"], "async"),
        (partial(plain, 1), "plain", ["b", "c"], "sync"),
        (partial(later, a=1), "later", ["a"], "async"),
        (partial(announced(later)), "later", ["a"], "async"),
        (Shop().order, "order", ["number"], "sync"),
        (Shop(), "__call__", ["number"], "async"),
        (sync_to_async(plain), "plain", ["a", "b", "c"], "async"),
    ],
)
def test_layers(
    function: Function, name: str, parameters: list[str], style: str
) -> None:
    found = inspect_function(function)
    assert found.name == name
    assert names(function) == parameters
    assert found.style == style


def test_docstrings_come_from_within() -> None:
    assert inspect_function(partial(plain, 1)).documentation.text == "Say what came."
    assert inspect_function(Shop().order).documentation.text == "Find an order."


def test_a_partial_argument_becomes_a_default() -> None:
    (parameter,) = inspect_function(partial(later, a=7)).parameters
    assert parameter.default == 7
    assert not parameter.is_required


def test_no_annotations() -> None:
    def bare(a, b=1): ...  # type: ignore[no-untyped-def]

    found = inspect_function(bare)
    assert [p.annotation for p in found.parameters] == [MISSING, MISSING]
    assert found.returns is MISSING


def test_none_as_default_widens_the_hint() -> None:
    def implicit(
        a: int = None,  # type: ignore[assignment]  # noqa: RUF013
        b: Annotated[int, "b"] = None,  # type: ignore[assignment]  # noqa: RUF013
        c: Any = None,
        d: int | None = None,
    ) -> None: ...

    hints = [each.annotation for each in inspect_function(implicit).parameters]
    assert hints == [int | None, Annotated[int | None, "b"], Any, int | None]


async def first(ctx: Context, a: int) -> None: ...
async def last(a: int, ctx: contexts.Context) -> None: ...
async def dotted(a: int, *, ctx: mcp_app.Context) -> None: ...
async def optional(a: int, ctx: Context | None = None) -> None: ...
async def annotated(ctx: Annotated[Context, "given"], a: int) -> None: ...
def sync(a: int, ctx: SyncContext) -> None: ...
def positional(ctx: SyncContext, a: int, /) -> None: ...
def either(ctx: AnyContext, a: int) -> None: ...


@pytest.mark.parametrize(
    "function", [first, last, dotted, optional, annotated, sync, positional, either]
)
def test_the_context_is_no_parameter(function: Function) -> None:
    assert inspect_function(function).context == "ctx"
    assert names(function) == ["a"]


def test_a_name_alone_makes_no_context() -> None:
    def told(ctx: str) -> None: ...

    assert inspect_function(told).context is None


async def wrong_async(ctx: SyncContext) -> None: ...
def wrong_sync(request: Context) -> None: ...
async def twice(a: Context, b: Context) -> None: ...
def anything(**named: int) -> None: ...
def unknown_return() -> list[Nothing]:
    return []


def counting() -> Iterator[int]:
    yield 1


REFUSED = [
    (
        wrong_async,
        f"{HERE}.wrong_async is an async function, so its parameter ctx must be "
        "annotated with Context, not with SyncContext.",
    ),
    (
        wrong_sync,
        f"{HERE}.wrong_sync is a sync function, so its parameter request must be "
        "annotated with SyncContext, not with Context.",
    ),
    (twice, f"{HERE}.twice takes the context twice: a, b."),
    (
        anything,
        f"{HERE}.anything takes **named: 'int', but clients must know each parameter"
        " by name. Write named: dict[str, int].",
    ),
    (
        unknown_return,
        f"{HERE}.unknown_return: the annotation 'list[Nothing]' of the return value "
        "must be readable when the function is registered: name 'Nothing' is not "
        "defined. Import Nothing, and not under TYPE_CHECKING alone.",
    ),
    (
        Shop.order,
        f"{HERE}.Shop.order takes self. Register a bound method of an object instead.",
    ),
    (
        counting,
        f"{HERE}.counting is a generator. Return the whole result, and report"
        " progress with ctx.progress().",
    ),
    (5, "builtins.int is not a function. Write the decorator above a def."),
]


@pytest.mark.parametrize(("function", "sentence"), REFUSED)
def test_refused(function: Any, sentence: str) -> None:
    with pytest.raises(RegistrationError) as refusal:
        inspect_function(function)
    assert str(refusal.value) == sentence


def test_an_annotation_that_is_no_python_is_refused() -> None:
    def broken(a) -> None: ...  # type: ignore[no-untyped-def]

    broken.__annotations__["a"] = "list["
    with pytest.raises(
        RegistrationError, match=r"the annotation 'list\[' of parameter"
    ):
        inspect_function(broken)


def test_a_function_without_a_readable_signature_is_refused() -> None:
    with pytest.raises(RegistrationError, match="has no readable signature"):
        inspect_function(async_to_sync(later))


# -- rule functions --------------------------------------------------------------------


def judge(asked: AccessRequest) -> bool:
    return True


async def late(asked: AccessRequest) -> bool:
    return False


class LateCall:
    async def __call__(self, asked: AccessRequest) -> bool:
        return False


class Judging:
    def __call__(self, asked: AccessRequest) -> bool:
        return True

    async def judge(self, asked: AccessRequest) -> bool:
        return False


def with_more(asked: AccessRequest, more: int) -> bool:
    return True


def named_only(*, asked: AccessRequest) -> bool:
    return True


def test_a_rule_is_called_as_its_function_is() -> None:
    rule = build_rule(judge)
    assert (rule.key, rule.judge, rule.arguments) == (f"{HERE}.judge", judge, False)
    assert build_rule(judge, "shop.may", arguments=True).key == "shop.may"
    assert build_rule(judge, "shop.may", arguments=True).arguments


def test_a_coroutine_would_always_say_yes() -> None:
    coroutines: list[Any] = [late, LateCall(), Judging().judge, partial(late)]
    for function in (*coroutines, partial(partial(LateCall()))):
        with pytest.raises(RegistrationError, match="runs in a thread"):
            build_rule(function, "x")


def test_a_rule_takes_one_argument() -> None:
    fitting: list[Any] = [Judging(), partial(with_more, more=1), lambda *asked: True]
    for function in (*fitting, lambda asked, more=1: True):
        assert build_rule(function, "x").judge is function
    others: list[Any] = [with_more, named_only, lambda: True]
    for function in (*others, partial(judge, cast("AccessRequest", None))):
        with pytest.raises(RegistrationError, match="a rule must take one argument"):
            build_rule(function, "x")


def test_the_name_of_what_has_none() -> None:
    assert qualified_name(judge) == "tests.catalog.test_callables.judge"
    assert "partial" in qualified_name(partial(judge))


# -- single objects --------------------------------------------------------------


def binding(template: str = "user://{username}") -> Binding:
    parsed = UriTemplate.parse(template)
    return cast(
        "Binding", SimpleNamespace(model=User, template=parsed, uri=str(template))
    )


def test_no_template_and_no_column() -> None:
    with pytest.raises(RegistrationError, match="Add the option “model”, and a URI"):
        object_rule("shop.user", None, "auth.view_user")
    with pytest.raises(RegistrationError, match="'shoe' is not a column of auth"):
        object_rule("shop.user", binding("user://{shoe}"), "auth.view_user")


class Reader:
    """May view ana alone."""

    def has_perm(self, permission: str, shown: Any) -> bool:
        return permission == "auth.view_user" and shown.username == "ana"


def asked(user: Any, arguments: dict[str, object] | None) -> AccessRequest:
    principal = Principal(kind="user", user_id="1")
    return AccessRequest(principal=principal, server="", user=user, arguments=arguments)


@pytest.fixture
def views_user(db: None) -> Callable[[AccessRequest], bool]:
    for name in ("ana", "ben"):
        User.objects.create_user(name)
    rule = object_rule("shop.user", binding(), "auth.view_user")
    assert rule.key == "auth.view_user of user://{username}"
    assert (rule.arguments, rule.object) == (True, True)
    return rule.judge


@pytest.mark.parametrize(
    ("user", "arguments", "may"),
    [
        # In lists nothing is read yet.
        (None, None, True),
        (Reader(), {"username": "ana"}, True),
        (Reader(), {"username": "ben"}, False),
        (Reader(), {"username": "nobody"}, False),
        (Reader(), {}, False),
        (None, {"username": "ana"}, False),
        (object(), {"username": "ana"}, False),
    ],
)
def test_who_may_see_an_instance(
    views_user: Callable[[AccessRequest], bool],
    user: Any,
    arguments: dict[str, object] | None,
    may: bool,
) -> None:
    assert views_user(asked(user, arguments)) is may


@pytest.mark.django_db
def test_a_value_that_no_column_has_finds_nothing() -> None:
    rule = object_rule("shop.user", binding("user://{pk}"), "auth.view_user")
    assert not rule.judge(asked(Reader(), {"pk": "not a number"}))


@pytest.mark.django_db
def test_two_instances_are_none() -> None:
    for name in ("ana", "ben"):
        User.objects.create_user(name, last_name="Ruiz")
    rule = object_rule("shop.user", binding("user://{last_name}"), "auth.view_user")
    assert not rule.judge(asked(Reader(), {"last_name": "Ruiz"}))
    User.objects.get(username="ben").delete()
    assert rule.judge(asked(Reader(), {"last_name": "Ruiz"}))
