"""Users by the keys that rows keep as text, whatever stands there."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from mcp_app.admin.page.header import GREATEST, client_of, user_names, users, who
from mcp_app.interface.principal import Principal
from mcp_app.models import Session


def session(user_id: str = "", info: str = "") -> Session:
    key = Principal(kind="user", user_id=user_id).key
    return Session(principal_key=key, client_info=info)


@pytest.mark.django_db
def test_names_of_those_that_there_are() -> None:
    ana, ben = User.objects.create_user("ana"), User.objects.create_user("ben")
    keys = [str(ana.pk), str(ben.pk), str(ana.pk), "999999"]
    assert user_names(keys) == {str(ana.pk): "ana", str(ben.pk): "ben"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    "key", ["", "ana", "1.5", "\0", str(GREATEST + 1), f"-{GREATEST + 1}", "9" * 40]
)
def test_what_is_no_key_is_not_asked_for(key: str) -> None:
    assert user_names([key]) == {}


@pytest.mark.django_db
def test_the_greatest_key_is_asked_for() -> None:
    assert list(users([str(GREATEST)])) == []
    assert str(GREATEST) in str(users([str(GREATEST)]).query)


@pytest.mark.parametrize(
    ("user_id", "name"),
    [("7", "ana"), ("8", "8"), ("", "nobody"), ("\u202e", "⟦U+202E⟧")],
)
def test_whose_session_it_is(user_id: str, name: str) -> None:
    assert who(session(user_id), {"7": "ana"}) == name


@pytest.mark.parametrize(
    ("info", "name"),
    [
        ('{"name": "Claude", "version": "2"}', "Claude 2"),
        ("", "a client without a name"),
        ('{"name": "a\\u202eb"}', "a⟦U+202E⟧b"),
    ],
)
def test_what_a_client_calls_itself(info: str, name: str) -> None:
    assert client_of(session(info=info)) == name
