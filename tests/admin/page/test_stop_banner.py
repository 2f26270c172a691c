"""What is stopped, in words: what, since when, by whom, and what became of calls."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import RequestFactory
from django.utils.timezone import now

from mcp_app.admin.page.header import (
    GREATEST,
    MAX_NAMES,
    active_stops,
    client_of,
    existing_users,
    session_user_name,
    stop_result,
    stop_sentence,
    stop_target,
    stops_applying_to,
    stops_of_row,
    target_of,
    user_names,
    who_may_stop,
    wide_stops,
)
from mcp_app.interface.principal import Principal
from mcp_app.models import Server, Session, Stop, Tool
from mcp_app.models.stops import Running, Scope
from mcp_app.site_time import time_html


def stop(scope: str = Scope.EVERYTHING, **columns: Any) -> Stop:
    return Stop(**{"scope": scope, "at": now(), "by_name": "kim", **columns})


def of_tool(ref: str = "7", **columns: Any) -> Stop:
    return stop(Scope.DEFINITION, kind="tool", ref=ref, name="Find", **columns)


SERVER = {"kind": "server", "ref": "7", "name": "Shop"}


def test_a_stop_by_nobody_known() -> None:
    made = stop(by_name="")
    said = f"Everything is stopped since {time_html(made.at)}, by an unknown person."
    assert stop_sentence(made) == said


def test_what_others_wrote_is_no_markup() -> None:
    said = stop_sentence(of_tool(by_name="<i>\u202e"))
    assert "<i>" not in said
    assert "\u202e" not in said


def test_what_became_of_one_call() -> None:
    said = "Clients do not see it any more. 1 running call was cancelled."
    assert stop_result(stop(running=Running.CANCEL, cancelled=1)) == said


def test_which_stops_hold_a_row() -> None:
    every, changes, other = stop(), stop(Scope.CHANGES), of_tool("8")
    own = of_tool()
    server = stop(Scope.SERVER, **SERVER)
    request = RequestFactory().get("/")
    vars(request)["mcp_stops"] = [every, changes, other, own, server]
    assert wide_stops(active_stops(request)) == [every, changes, server]
    tool = Tool(pk=7, name="find")
    assert stops_of_row(active_stops(request), tool) == [own]
    # A tool's page has the strip for what is wider, but for everything.
    assert stops_applying_to(request, tool) == [own, every]
    assert stops_applying_to(request, Server(pk=7, slug="shop")) == [server, every]
    assert stop_target(own) == target_of(tool) == "tool:7"
    assert stop_target(every) == "everything"


@pytest.mark.django_db
def test_stops_are_asked_for_once(django_assert_num_queries: Any) -> None:
    Stop.objects.create(scope=Scope.EVERYTHING)
    Stop.objects.create(scope=Scope.CHANGES, ended=now())
    request = RequestFactory().get("/")
    with django_assert_num_queries(1):
        assert [each.scope for each in active_stops(request)] == [Scope.EVERYTHING]
        assert len(active_stops(request)) == 1


# -- who can -----------------------------------------------------------------------

CAN = "To stop something, ask someone with the right “Can stop and start”"


def told(*rights: str) -> str:
    user = User.objects.create_user("kim")
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    request = RequestFactory().get("/")
    request.user = user
    return who_may_stop(request)


@pytest.fixture
def right(db: None) -> Permission:
    return Permission.objects.get(codename="stop", content_type__app_label="mcp_app")


def test_names_of_people_only_for_who_may_see_users(right: Permission) -> None:
    group = Group.objects.create(name="Support")
    group.permissions.add(right)
    User.objects.create_user("ana").groups.add(group)
    User.objects.create_user("gone", is_active=False).groups.add(group)
    assert told() == f"{CAN}: Support."
    User.objects.get(username="kim").delete()
    assert told("view_user") == f"{CAN}: ana."


@pytest.mark.usefixtures("right")
def test_where_nobody_can() -> None:
    assert told() == f"{CAN}."


def test_only_some_groups_are_named(right: Permission) -> None:
    for number in range(MAX_NAMES + 1):
        Group.objects.create(name=f"g{number}").permissions.add(right)
    assert told().removeprefix(CAN).count(", ") == MAX_NAMES - 1


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
