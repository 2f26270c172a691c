"""Who stopped something, and whose session it is, also where nobody knows."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.utils.timezone import now

from mcp_app.admin.page.people import (
    GREATEST,
    client_of,
    existing_users,
    session_user_name,
    user_names,
)
from mcp_app.admin.page.stop_banner import stop_sentence
from mcp_app.interface.principal import Principal
from mcp_app.models import Session, Stop
from mcp_app.models.stops import Scope
from mcp_app.site_time import time_html


def test_a_stop_by_nobody_known() -> None:
    made = Stop(scope=Scope.EVERYTHING, at=now())
    said = f"Everything is stopped since {time_html(made.at)}, by an unknown person."
    assert stop_sentence(made) == said


# -- people ----------------------------------------------------------------------------


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
    assert list(existing_users([str(GREATEST)])) == []
    assert str(GREATEST) in str(existing_users([str(GREATEST)]).query)


@pytest.mark.parametrize(
    ("user_id", "name"), [("7", "ana"), ("8", "8"), ("\u202e", "⟦U+202E⟧")]
)
def test_whose_session_it_is(user_id: str, name: str) -> None:
    key = Principal(kind="user", user_id=user_id).key
    assert session_user_name(Session(principal_key=key), {"7": "ana"}) == name


def test_a_client_that_says_nothing_of_itself() -> None:
    assert client_of(Session(client_info="")) == "a client without a name"
