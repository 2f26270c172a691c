"""Filters of the list of access tokens: each state is what a token's page says."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import RequestFactory
from django.utils import timezone

from mcp_app.account.presentation import state_of
from mcp_app.admin.tokens import token_admin
from mcp_app.admin.tokens.token_admin import LONG, SOON, STATES, TokenStateFilter
from mcp_app.models import AccessToken

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 18, 14, tzinfo=timezone.get_default_timezone())
TICK = timedelta(microseconds=1)


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django.utils.timezone.now", lambda: NOW)


def token(name: str, *, active: bool = True, **columns: Any) -> AccessToken:
    user, _ = User.objects.get_or_create(username=f"{active}", is_active=active)
    return AccessToken.objects.create(
        name=name, user=user, digest=f"{name:0>64}", everywhere=True, **columns
    )


def chosen(state: str) -> set[str]:
    request = RequestFactory().get("/")
    made = TokenStateFilter(request, {"state": [state]}, AccessToken, None)  # type: ignore[arg-type]
    return {each.name for each in made.queryset(request, AccessToken.objects.all())}


def test_a_token_is_in_the_state_that_its_page_says() -> None:
    ends = (None, NOW - TICK, NOW, NOW + TICK)
    for number, (active, expires, revoked) in enumerate(
        product((True, False), ends, (None, NOW - TICK))
    ):
        token(f"{number}", active=active, expires=expires, revoked=revoked)
    words = {"good": "Good", "stopped": "Stopped", "revoked": "Revoked"}
    for state, word in {**words, "expired": "Expired"}.items():
        said = {
            each.name
            for each in AccessToken.objects.all()
            if state_of(each).word == word
        }
        assert chosen(state) == said != set()
    assert len(chosen("no-such")) == 16


@pytest.mark.parametrize(
    ("expires", "soon"),
    [(NOW, False), (NOW + TICK, True), (NOW + SOON, True), (NOW + SOON + TICK, False)],
)
def test_what_ends_soon(expires: datetime, soon: bool) -> None:
    token("a", expires=expires)
    token("forever")
    token("revoked", expires=expires, revoked=NOW)
    assert chosen("soon") == ({"a"} if soon else set())


@pytest.mark.parametrize(
    ("used", "created", "unused"),
    [
        (NOW - LONG, NOW - 2 * LONG, False),
        (NOW - LONG - TICK, NOW - 2 * LONG, True),
        (None, NOW - LONG - TICK, True),
        (None, NOW - LONG, False),
        (NOW, NOW - 2 * LONG, False),
    ],
)
def test_what_nobody_uses(used: Any, created: datetime, unused: bool) -> None:
    for name, revoked in (("a", None), ("revoked", NOW)):
        row = token(name, used=used, revoked=revoked)
        AccessToken.objects.filter(pk=row.pk).update(created=created)
    assert chosen("unused") == ({"a"} if unused else set())
    assert "a" in chosen("idle") or used == NOW


def test_each_state_can_be_chosen() -> None:
    made = TokenStateFilter(RequestFactory().get("/"), {}, AccessToken, None)  # type: ignore[arg-type]
    assert [name for name, _ in made.lookup_choices] == [*STATES]
    assert token_admin.SOON < token_admin.LONG
