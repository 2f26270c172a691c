"""What stands above every page of a row: its state, what it means, and the tabs."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.http import HttpRequest
from django.test import RequestFactory

from mcp_app.admin.page.header import LOOKS, row_tabs, state_strip, why_broken
from mcp_app.models import Server, State, Stop, Tool
from mcp_app.models.definitions import Source
from mcp_app.models.stops import Scope
from mcp_app.publishing.rights import RIGHTS
from tests.published import published

pytestmark = pytest.mark.django_db

STOPPED = "Clients do not see it: it was stopped. Nothing was lost."


def request(*rights: str, user: Any = None) -> HttpRequest:
    made = RequestFactory().get("/")
    if user is None:
        user, _ = User.objects.get_or_create(username="kim")
        user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    made.user = user
    return made


def made(*, served: bool = True, **columns: Any) -> Tool:
    row = Tool(**{"name": "find", **columns})
    if served:
        row = published(row)
        Tool.objects.filter(pk=row.pk).update(**columns)
        row.refresh_from_db()
    else:
        row.save()
    return row


@pytest.mark.parametrize(
    ("columns", "state", "sentence"),
    [
        ({"served": False}, State.UNPUBLISHED, "Clients do not see it."),
        ({}, State.PUBLISHED, "Clients see version 1: a command published it ("),
        ({"title": "New"}, State.CHANGED, "Clients see version 1: a command "),
        ({"broken": "G\u202eone."}, State.BROKEN, "G⟦U+202E⟧one."),
    ],
)
def test_the_state_and_what_clients_see(
    columns: dict[str, Any], state: State, sentence: str
) -> None:
    row = made(**columns)
    if state is State.CHANGED:
        row.title = "Newer"
        row.save()
    found = state_strip(request(), row)
    assert (found["state"], found["look"]) == (state, LOOKS[state])
    assert found["sentence"].startswith(sentence)
    assert not found["stopped"]


def test_a_stop_is_said_whatever_else_is_wrong() -> None:
    row = made(broken="Gone.")
    Stop.objects.create(
        scope=Scope.DEFINITION, kind="tool", ref=str(row.pk), name="find", by_name="ana"
    )
    found = state_strip(request(), row)
    assert found["state"] is State.STOPPED
    assert found["sentence"].startswith("find is stopped since ")
    assert found["stopped"]
    assert found["start_url"].endswith(f"?what=tool:{row.pk}&back=row")


def test_a_stop_of_another_row_is_not_its_own() -> None:
    row = made()
    Stop.objects.create(scope=Scope.DEFINITION, kind="tool", ref="999", name="other")
    Stop.objects.create(scope=Scope.EVERYTHING)
    assert state_strip(request(), row)["state"] is State.PUBLISHED


def test_what_code_declares_is_seen_as_it_is_until_it_is_published() -> None:
    row = Tool.objects.create(name="gone", source=Source.CODE, kind="function")
    # The code has no such tool: the column of the last deployment does not count.
    assert why_broken(row) != ""
    row.broken = "Old."
    assert why_broken(row) != "Old."


def test_what_is_stored_depends_on_no_code() -> None:
    assert why_broken(made(broken="Old.")) == "Old."
    assert why_broken(Server(slug="shop", broken="Old.")) == "Old."


def test_only_a_definition_has_tokens_and_problems() -> None:
    row = made(tokens=7, to_fix=2, advices=3)
    names = ("tokens", "to_fix", "advices")
    for each, numbers in ((row, [7, 2, 3]), (Server.objects.get(), [0, 0, 0])):
        found = state_strip(request(), each)
        assert [found[name] for name in names] == numbers


def test_each_right_has_the_name_that_django_shows() -> None:
    rights = Permission.objects.filter(content_type__app_label="mcp_app")
    for codename, name in RIGHTS.items():
        found = rights.filter(codename=codename).values_list("name", flat=True)
        assert str(name).casefold() in {each.casefold() for each in found}


def test_one_tab_is_the_current_one() -> None:
    row = made()
    found = row_tabs(row, "history")
    assert [each["label"] for each in found if each["current"]] == ["History"]
    assert all(f"/{row.pk}/" in each["url"] for each in found)
