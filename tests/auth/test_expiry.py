"""Which keys and apps are kept no longer; what goes with an app."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from mcp_app.auth import rights
from mcp_app.auth.rights import APP_RETENTION, KEY_RETENTION, expired_apps
from mcp_app.models import AccessToken, Connection, IssuedToken
from tests.account.apps import app

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

MARGIN = timedelta(minutes=1)
_numbers = count()


@pytest.fixture
def ana() -> User:
    return User.objects.create_user("ana")


def key(row: AccessToken, expires: datetime) -> IssuedToken:
    return IssuedToken.objects.create(
        digest=f"{next(_numbers):064}", token=row, created=expires, expires=expires
    )


def counts() -> list[int]:
    return [each.count() for each in expired_apps()]


def removed() -> list[int | None]:
    return [each.remove() for each in expired_apps()]


def apps() -> set[int]:
    return {each.pk for each in AccessToken.objects.all()}


def test_an_empty_database_has_nothing_expired() -> None:
    assert counts() == [0, 0, 0]
    assert removed() == [None, None, None]


def test_keys_are_deleted_an_hour_after_their_end(ana: User) -> None:
    row, now = app(ana), timezone.now()
    kept = key(row, now - KEY_RETENTION + MARGIN)
    key(row, now - KEY_RETENTION - MARGIN)
    assert counts() == [1, 0, 0]
    assert removed() == [1, None, None]
    assert IssuedToken.objects.get() == kept
    assert apps() == {row.pk}


def test_an_unfinished_app_is_deleted_an_hour_after_its_code(ana: User) -> None:
    now = timezone.now()
    kept, old = app(ana, is_used=False), app(ana, is_used=False)
    used = app(ana)
    for row, end in (
        (kept, now - KEY_RETENTION + MARGIN),
        (old, now - KEY_RETENTION - MARGIN),
        (used, now - KEY_RETENTION - MARGIN),
    ):
        Connection.objects.filter(pk=row.pk).update(code_ends=end)
        AccessToken.objects.move_end(
            row.pk, now + KEY_RETENTION if row == used else end
        )
    assert counts() == [0, 1, 0]
    assert removed() == [None, 1, None]
    assert apps() == {kept.pk, used.pk}


def test_an_ended_app_is_deleted_after_90_days_with_its_keys(ana: User) -> None:
    now = timezone.now()
    old, young = now - APP_RETENTION - MARGIN, now - APP_RETENTION + MARGIN
    gone = [app(ana, revoked=old), app(ana, expires=old)]
    kept = [app(ana, revoked=young), app(ana, expires=young)]
    kept.append(app(ana, created=old, used=old))
    for row in (*gone, *kept):
        key(row, now)
    # Tokens that somebody made are taken off by hand.
    token, _ = AccessToken.objects.make(user=ana, name="a laptop")
    AccessToken.objects.filter(pk=token.pk).update(revoked=old)
    assert counts() == [0, 0, 2]
    assert removed() == [None, None, 2]
    assert apps() == {token.pk, *(row.pk for row in kept)}
    assert Connection.objects.count() == IssuedToken.objects.count() == len(kept)
    links = AccessToken.servers.through.objects
    assert links.count() == len(kept)
    assert removed() == [None, None, None]


def test_deletes_in_batches(ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rights, "PORTION", 2)
    for _ in range(5):
        app(ana, expires=timezone.now() - APP_RETENTION - MARGIN)
    _, _, ended = expired_apps()
    assert ended.count() == 5
    assert [ended.remove() for _ in range(4)] == [2, 2, 1, None]
