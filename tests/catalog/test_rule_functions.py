"""Rules of the site: which functions can be asked, and the one for single objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.contrib.auth.models import User

from mcp_app.catalog.bindings import Binding
from mcp_app.catalog.callables import made_rule, object_rule
from mcp_app.catalog.errors import RegistrationError
from mcp_app.catalog.findings import qualified_name
from mcp_app.interface.principal import AccessRequest, Principal
from mcp_app.protocol.uri_templates import UriTemplate


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


# -- functions -------------------------------------------------------------------


def test_a_rule_is_called_as_its_function_is() -> None:
    rule = made_rule(judge)
    assert (rule.key, rule.judge, rule.arguments) == (
        "tests.catalog.test_rule_functions.judge",
        judge,
        False,
    )
    assert made_rule(judge, "shop.may", arguments=True).key == "shop.may"
    assert made_rule(judge, "shop.may", arguments=True).arguments


@pytest.mark.parametrize(
    "function",
    [
        Judging(),
        partial(with_more, more=1),
        lambda *asked: True,
        lambda asked, more=1: True,
    ],
)
def test_what_takes_one_argument(function: Any) -> None:
    assert made_rule(function, "x").judge is function


@pytest.mark.parametrize(
    "function",
    [late, LateCall(), Judging().judge, partial(late), partial(partial(LateCall()))],
)
def test_a_coroutine_would_always_say_yes(function: Any) -> None:
    with pytest.raises(RegistrationError, match="runs in a thread"):
        made_rule(function, "x")


@pytest.mark.parametrize(
    "function",
    [with_more, named_only, lambda: True, partial(judge, cast("AccessRequest", None))],
)
def test_another_number_of_arguments(function: Any) -> None:
    with pytest.raises(RegistrationError, match="a rule must take one argument"):
        made_rule(function, "x")


def test_the_name_of_what_has_none() -> None:
    assert qualified_name(judge) == "tests.catalog.test_rule_functions.judge"
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
