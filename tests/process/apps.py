"""Programs that sign in at a cluster: a person lets them in, they get their keys."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import httpx

from tests.oauth.program import (
    AUTHORIZE,
    CONSENT,
    REDIRECT,
    VERIFIER,
    answer_in,
    challenge_of,
    sealed_in,
)
from tests.process.clusters import GUARDED, ORIGIN
from tests.process.staff import PATIENCE_S, Staff

OK: Final = 200
PAGES: Final = "/account/tokens/"
LISTED: Final = re.compile(r'href="/account/tokens/apps/(\d+)/">([^<]+)</a>')
HANDLE: Final = re.compile(r"app_\w{8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """What a program got, and by what people name its app."""

    client_id: str
    code: str
    access: str
    refresh: str
    key: str
    handle: str

    def exchanges(self, urls: list[str], **changed: str) -> list[httpx.Response]:
        form = _code_form(self.client_id, self.code)
        return answers_at_once(urls, {**form, **changed})

    def refreshes(self, urls: list[str]) -> list[httpx.Response]:
        form = {
            "grant_type": "refresh_token",
            "client_id": self.client_id,
            "refresh_token": self.refresh,
        }
        return answers_at_once(urls, form)


def sign_in(staff: Staff, name: str, *, exchange: bool = True) -> App:
    """Let staff allow a program that it comes in as them; it gets its keys.

    If it does not exchange its code, it has none.
    """
    registered = staff.post(
        "/mcp-oauth/register",
        json={
            "client_name": name,
            "redirect_uris": [REDIRECT],
            "grant_types": ["authorization_code", "refresh_token"],
        },
    )
    client_id = registered.json()["client_id"]
    code = _allowed(staff, client_id)
    tokens: dict[str, Any] = {}
    if exchange:
        [answer] = answers_at_once([str(staff.base_url)], _code_form(client_id, code))
        assert answer.status_code == OK, answer.text
        tokens = answer.json()
    # Those of the same name that have ended come last.
    found = reversed(LISTED.findall(staff.get(PAGES).text))
    keys = {shown: key for key, shown in found}
    handle = HANDLE.search(staff.get(f"{PAGES}apps/{keys[name]}/").text)
    assert handle is not None
    return App(
        client_id=client_id,
        code=code,
        access=tokens.get("access_token", ""),
        refresh=tokens.get("refresh_token", ""),
        key=keys[name],
        handle=handle[0],
    )


def _allowed(staff: Staff, client_id: str) -> str:
    """Open the page, press *Allow*, and return the code that the program is sent."""
    asked = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": REDIRECT,
        "resource": f"{ORIGIN}/mcp/{GUARDED}",
        "code_challenge": challenge_of(VERIFIER),
        "code_challenge_method": "S256",
    }
    page = staff.get(AUTHORIZE, params=asked).text
    chosen = {"may": "change", "which": "all", "ends": "90"}
    return answer_in(staff.submit(CONSENT, sealed=sealed_in(page), **chosen))["code"]


def _code_form(client_id: str, code: str) -> dict[str, str]:
    return {
        "grant_type": "authorization_code",
        "client_id": client_id,
        "code": code,
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
    }


def answers_at_once(urls: list[str], form: dict[str, str]) -> list[httpx.Response]:
    def send(url: str) -> httpx.Response:
        address = f"{url.removesuffix('/mcp').rstrip('/')}/mcp-oauth/token"
        return httpx.post(address, data=form, timeout=PATIENCE_S)

    with ThreadPoolExecutor(len(urls)) as threads:
        return list(threads.map(send, urls))
