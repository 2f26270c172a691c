"""What a person does to an app on its page, and what the program gets then."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from mcp_app.models import AccessToken, Connection
from tests.oauth.program import Program, sign_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("support")]

BEFORE = re.compile(r'name="before" value="([0-9a-f]{64})"')


def page_of_app() -> str:
    row = AccessToken.objects.filter(revoked=None).get()
    return reverse("mcp_account:app", args=[row.pk])


def choose(browser: Client, **typed: Any) -> None:
    address = page_of_app()
    found = BEFORE.search(browser.get(address).content.decode())
    assert found
    usual = {"name": "Claude", "may": "change", "ends": "keep", "before": found[1]}
    assert browser.post(address, {**usual, **typed}).status_code == 302


def text_of(browser: Client, address: str) -> str:
    page = re.sub(r"<[^>]+>", " ", browser.get(address).content.decode())
    return " ".join(html.unescape(page).split())


def test_narrowed_and_widened_to_what_was_asked(program: Program, hers: Client) -> None:
    answer = sign_in(program, hers)
    assert answer["scope"] == "mcp:read mcp:change"
    for may, scope in (("read", "mcp:read"), ("change", "mcp:read mcp:change")):
        choose(hers, may=may)
        answer = program.refresh(answer["refresh_token"]).json()
        assert answer["scope"] == scope


def test_the_key_ends_with_what_its_owner_says(program: Program, hers: Client) -> None:
    answer = sign_in(program, hers)
    choose(hers, ends="date", until=f"{AccessToken.objects.get().created:%Y-%m-%d}")
    until = Connection.objects.get().until
    assert until is not None
    assert AccessToken.objects.get().expires == until
    later = program.refresh(answer["refresh_token"])
    assert later.status_code == 200
    assert AccessToken.objects.get().expires == until


def test_ended_by_its_owner_and_signed_in_again(program: Program, hers: Client) -> None:
    answer = sign_in(program, hers)
    hers.post(reverse("mcp_account:end_all"))
    refused = program.refresh(answer["refresh_token"])
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
    sign_in(program, hers)
    listed = text_of(hers, reverse("mcp_account:tokens"))
    assert listed.count("Its owner ended it.") == 1
    assert listed.count("End now") == 1
