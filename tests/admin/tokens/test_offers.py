"""A colleague's link makes a token for one person, once; a token of named tools."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.test import Client
from django.utils import timezone

from mcp_app import test
from mcp_app.account import token_issuance
from mcp_app.account.token_issuance import take_token
from mcp_app.auth.token_cache import read_tokens
from mcp_app.models import AccessToken, Prompt, Tool
from mcp_app.models.fields import digest
from tests.account.conftest import account, filled, shown
from tests.account.test_token_issuance import AT_ONCE, together
from tests.admin.forms.test_rights import MESSAGE
from tests.admin.pages import Staff, page, words_in
from tests.published import published
from tests.server.test_recording import HI

pytestmark = pytest.mark.django_db
ADD, TAKE = page("accesstoken", "add"), account("take")
REFUSED = "This link is not good, or not any more"


def offer() -> tuple[AccessToken, str]:
    boss, ana = User.objects.create_superuser("boss"), User.objects.create_user("ana")
    return token_issuance.issue_token(boss, user=ana, name="desk", maker=boss)


def test_a_link_makes_a_token_of_two_tools_once(staff: Staff) -> None:
    ana, maker, hers = User.objects.create_user("ana"), staff("manage_tokens"), Client()
    typed = filled(maker, ADD, colleague="ana", tools="find pay", ends="7")
    words = words_in(maker.post(ADD, typed))
    found = re.search(rf"http://testserver{TAKE}#(link_[\w-]{{43}})", words)
    assert found
    assert "already shown" in words_in(maker.post(ADD, typed))
    link, code = found[0], found[1]
    assert hers.post(TAKE, {"code": code})["Location"] == f"/account/login/?next={TAKE}"
    hers.force_login(ana)
    assert hers.get(TAKE)["Referrer-Policy"] == "same-origin"
    with pytest.raises(PermissionDenied):
        token_issuance.issue_token(ana, user=ana, name="desk", maker=ana)
    with pytest.raises(token_issuance.Irreplaceable, match="used the link"):
        token_issuance.replace_token(ana, AccessToken.objects.get(), timedelta())
    token = shown(hers.post(TAKE, {"code": link}))
    for spent in (code, token):
        assert REFUSED in words_in(hers.post(TAKE, {"code": spent}))
    row, lines = AccessToken.objects.get(), LogEntry.objects.order_by("pk")
    assert (row.digest, row.tools) == (digest(token), "find pay")
    assert row.expires == row.good_until
    assert [each.user.get_username() for each in lines] == ["kim", "ana"]
    assert code not in str([*lines.values(), *AccessToken.objects.values()])


BOSS = User.objects.filter(username="boss")
ENDED: dict[str, Any] = {
    "for somebody else": lambda row: AccessToken.objects.update(user=row.maker),
    "after 24 hours": lambda row: AccessToken.objects.move_end(row.pk, timezone.now()),
    "taken back": lambda row: token_issuance.end_token(None, row),
    "no right any more": lambda _row: BOSS.update(is_superuser=False),
    "not active": lambda _row: BOSS.update(is_active=False),
    "gone": lambda _row: BOSS.delete(),
}


@pytest.mark.parametrize("end", ENDED.values(), ids=ENDED)
def test_a_link_is_void(client: Client, end: Any) -> None:
    row, code = offer()
    end(row)
    client.force_login(User.objects.get(username="ana"))
    before = [*AccessToken.objects.values()]
    assert REFUSED in words_in(client.post(TAKE, {"code": code}))
    assert [*AccessToken.objects.values()] == before


@pytest.mark.databases
@pytest.mark.django_db(transaction=True)
def test_two_who_take_it_at_once() -> None:
    row, code = offer()
    done = together(partial(take_token, row.user, code), ValidationError)
    assert done == ["already"] * (AT_ONCE - 1) + ["made"]


def test_a_token_of_named_tools_reaches_nothing_else(admin_user: User) -> None:
    for name in ("find", "pay", "refund"):
        published(Tool(name=name, description="Does it.", config=HI))
    published(Prompt(name="find", description="Asks.", config=MESSAGE))
    columns = {"user": admin_user, "tools": "find pay", "may": "change"}
    row, _ = AccessToken.objects.make(name="desk", **columns)
    row, _ = token_issuance.replace_token(admin_user, row, timedelta())
    scope = read_tokens([row.digest])[row.digest].principal.scope
    client, whole = test.Client(admin_user, scope=scope), test.Client(admin_user)
    assert {each["name"] for each in client.tools()} == {"find", "pay"}
    assert (len(whole.prompts()), client.prompts()) == (1, [])
    assert client.call("pay").text == whole.call("refund").text
    client.assertHidden("refund")
