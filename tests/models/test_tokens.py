"""Rows of access tokens: their rules, and what is recorded of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.utils import timezone

from mcp_app.models import AccessToken, Server
from tests.models.recording import as_committed, recorded

pytestmark = [pytest.mark.django_db, pytest.mark.databases]


@pytest.fixture
def user() -> Any:
    return get_user_model()._default_manager.create(username="ana")


def make(user: Any, **columns: Any) -> tuple[AccessToken, str]:
    return AccessToken.objects.make(**{"user": user, "name": "a laptop", **columns})


def test_tokens_differ_and_are_found_by_themselves_alone(user: Any) -> None:
    made = [make(user) for _ in range(50)]
    assert len({token for _, token in made}) == 50
    assert len({row.family for row, _ in made}) == 50
    for row, token in made:
        assert AccessToken.objects.of(token).get() == row
        assert not AccessToken.objects.of(token.upper()).exists()


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", "", "This field cannot be blank."),
        ("name", "a\u202eb", "There is a hidden character U+202E"),
        ("may", "everything", "is not a valid choice"),
        ("tags", "a/b", "“a/b” cannot be a tag"),
        ("networks", "10.0.0.1/8", "“10.0.0.1/8” is not a network"),
        ("networks", "10.0.0.0/8 home", "“home” is not a network"),
        ("networks", "::ffff:10.0.0.0/104", "is an IPv4 network"),
        ("networks", ",", "has no entry"),
        ("tags", " , ", "has no entry"),
    ],
)
def test_what_cannot_be_kept(user: Any, field: str, value: str, said: str) -> None:
    with pytest.raises(ValidationError) as raised:
        make(user, **{field: value})
    assert said in str(raised.value.message_dict[field])
    assert not AccessToken.objects.exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"revoked": timezone.now()}, True),
        ({"expires": timezone.now()}, True),
        ({"may": "change"}, True),
        ({"tags": "a"}, True),
        ({"networks": "::1"}, True),
        ({"name": "another"}, False),
        ({"used": timezone.now()}, False),
    ],
)
def test_who_is_let_in_less_or_more_is_recorded(
    user: Any, change: dict[str, Any], told: bool
) -> None:
    row, _ = make(user)
    as_committed()
    for name, value in change.items():
        setattr(row, name, value)
    row.save(update_fields=list(change))
    assert recorded() == [("rights", str(user.pk))] * told
    as_committed()
    AccessToken.objects.update(**change)
    assert recorded() == [("rights", "*")] * told


def test_other_ends_are_recorded_and_no_new_token(user: Any) -> None:
    row, _ = make(user)
    assert recorded() == []
    server = Server.objects.create(slug="shop")
    as_committed()
    row.servers.add(server)
    assert recorded() == [("rights", "*")]
    as_committed()
    row.delete()
    assert ("rights", str(user.pk)) in recorded()
    make(user)
    ref = str(user.pk)
    as_committed()
    user.delete()
    assert recorded() == [("rights", ref)]
    assert not AccessToken.objects.exists()


def test_to_revoke_twice_changes_nothing(user: Any) -> None:
    row, _ = make(user)
    row.revoke()
    first = row.revoked
    row.revoke()
    assert row.revoked == first
    assert row.has_ended(timezone.now())


def test_the_next_token_may_what_this_one_may(user: Any) -> None:
    server = Server.objects.create(slug="shop")
    ends = timezone.now() + timedelta(days=30)
    narrow = {"tags": "a b", "networks": "::1", "servers": [server]}
    row, token = make(user, may="change", expires=ends, **narrow)
    new, other = row.replace(timedelta(hours=1))
    assert token != other
    for name in ("family", "name", "user", "may", "tags", "networks"):
        assert getattr(new, name) == getattr(row, name)
    assert new.expires == ends
    assert list(new.servers.all()) == [server]
    row.refresh_from_db()
    assert row.expires is not None
    assert timedelta(minutes=59) < row.expires - timezone.now() <= timedelta(hours=1)


def test_a_replacement_lets_nothing_last_longer(user: Any) -> None:
    ends = timezone.now() + timedelta(minutes=5)
    row, token = make(user, may="change", expires=ends)
    # What was narrowed meanwhile stays narrow.
    AccessToken.objects.of(token).update(may="read", tags="a")
    new, _ = row.replace(timedelta(hours=1))
    assert (new.may, new.tags) == ("read", "a")
    assert row.expires == new.expires == ends


def test_what_was_revoked_meanwhile_is_not_replaced(user: Any) -> None:
    row, token = make(user)
    AccessToken.objects.of(token).get().revoke()
    with pytest.raises(ValueError, match="has ended"):
        row.replace(timedelta(hours=1))
    assert AccessToken.objects.count() == 1


def test_what_has_ended_is_not_replaced(user: Any) -> None:
    row, _ = make(user, expires=timezone.now())
    with pytest.raises(ValueError, match="has ended"):
        row.replace(timedelta(0))
    assert AccessToken.objects.count() == 1
