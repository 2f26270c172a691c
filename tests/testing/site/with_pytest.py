"""The site's suite, as pytest runs it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connections

from mcp_app import Declined
from mcp_app.protocol.revisions import REVISIONS
from tests.testing.site.parcels.models import Parcel


@pytest.fixture(scope="session", autouse=True)
def _nothing_left() -> Iterator[None]:
    before = {each.name for each in threading.enumerate()}
    yield
    assert {each.name for each in threading.enumerate()} - before <= {"mcp-test"}


@pytest.fixture
def maria(db: None) -> User:
    user = User.objects.create_user("maria")
    user.user_permissions.add(Permission.objects.get(codename="change_parcel"))
    return user


@pytest.fixture
def parcel(db: None) -> Parcel:
    return Parcel.objects.create(number="A-1")


def test_get(
    mcp_client: Any, maria: User, parcel: Parcel, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(1):
        result = mcp_client(maria).call("parcel_get", number="A-1")
    assert result.data["state"] == "open"


def test_connections_stay_also_after_failures(
    mcp_client: Any, maria: User, parcel: Parcel
) -> None:
    client = mcp_client(maria)
    before = [id(each.connection) for each in connections.all()]
    for number in range(17):
        client.call("parcel_add", number=f"C-{number}")
    for error, tool, arguments in (
        (ValueError, "parcel_add", {"number": "D", "fail": True}),
        (ValueError, "parcel_add_later", {"number": "broken"}),
        (KeyboardInterrupt, "interrupted", {}),
    ):
        with pytest.raises(error):
            client.call(tool, **arguments)
    assert [id(each.connection) for each in connections.all()] == before
    assert client.call("parcel_count").data == 18


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_revision(
    mcp_client: Any, maria: User, parcel: Parcel, revision: str
) -> None:
    client = mcp_client(maria, revision=revision)
    assert client.call("parcel_count").data == 1
    assert client.call("parcel_get", number="A-1").data["number"] == "A-1"
    assert "parcel_send" in [each["name"] for each in client.tools()]


def test_declined(mcp_client: Any, maria: User, parcel: Parcel) -> None:
    client = mcp_client(maria, answers={"Really send A-1?": Declined()})
    assert client.call("parcel_send", number="A-1").data == "A-1 stays here."


@pytest.mark.django_db(transaction=True)
def test_committed(mcp_client: Any, maria: User) -> None:
    assert mcp_client(maria).call("parcel_add", number="B-1").data == "B-1"
    assert Parcel.objects.get().number == "B-1"


def test_committed_by_a_fixture(
    transactional_db: None, mcp_client: Any, maria: User
) -> None:
    assert mcp_client(maria).call("parcel_add_later", number="B-2").data == "B-2"


def test_on_commit(
    mcp_client: Any, maria: User, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True) as callbacks:
        mcp_client(maria).call("parcel_add", number="B-3")
    assert len(callbacks) == 1
