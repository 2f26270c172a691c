"""A program that signs in, step by step, as the clients do."""

from __future__ import annotations

import html
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

from django.test import Client

ORIGIN: Final = "https://shop.example.com"
RESOURCE: Final = f"{ORIGIN}/mcp/support"
WAYS: Final = {
    "token": "mcp_app.authentication.access_token",
    "oauth": "mcp_app.authentication.oauth",
}
REDIRECT: Final = "https://claude.ai/api/mcp/auth_callback"
VERIFIER: Final = "v" * 43
AUTHORIZE: Final = "/mcp-oauth/authorize"
CONSENT: Final = "/mcp-oauth/consent"
SEALED: Final = re.compile(r'name="sealed" value="([^"]+)"')
REFRESH: Final = re.compile(r'http-equiv="refresh" content="0;url=([^"]+)"')


def challenge_of(verifier: str) -> str:
    """Return the challenge of a verifier (RFC 7636, S256)."""
    digest = sha256(verifier.encode()).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


@dataclass
class Program:
    """What a program sends; `http` is no browser and has no cookies."""

    http: Client
    redirect: str = REDIRECT
    redirects: list[str] = field(default_factory=lambda: [REDIRECT])
    client_id: str = ""

    def register(self, **members: Any) -> Any:
        sent = {
            "client_name": "Claude",
            "redirect_uris": self.redirects,
            "grant_types": ["authorization_code", "refresh_token"],
            **members,
        }
        response: Any = self.http.post(
            "/mcp-oauth/register", sent, content_type="application/json"
        )
        if response.status_code == 201:
            self.client_id = response.json()["client_id"]
        return response

    def request(self, **changed: Any) -> str:
        """Return the address of the page to open; None leaves a parameter out."""
        given = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect,
            "state": "a state",
            "scope": "mcp:read mcp:change",
            "resource": RESOURCE,
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
            **changed,
        }
        named = {name: each for name, each in given.items() if each is not None}
        return f"{AUTHORIZE}?{urlencode(named, doseq=True)}"

    def post(self, path: str = "token", **form: str) -> Any:
        sent = {"client_id": self.client_id, **form}
        return self.http.post(
            f"/mcp-oauth/{path}",
            urlencode(sent),
            content_type="application/x-www-form-urlencoded",
        )

    def exchange(self, code: str, **changed: str) -> Any:
        return self.post(
            **{
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": self.redirect,
                "code_verifier": VERIFIER,
                **changed,
            }
        )

    def refresh(self, token: str, **changed: str) -> Any:
        form = {"grant_type": "refresh_token", "refresh_token": token, **changed}
        return self.post(**form)


def page_of(browser: Client, address: str) -> str:
    return browser.get(address).content.decode()


def sealed_in(page: str) -> str:
    match = SEALED.search(page)
    assert match, page
    return match[1]


def allow(browser: Client, address: str, **typed: Any) -> Any:
    sealed = sealed_in(page_of(browser, address))
    usual = {"may": "change", "which": "all", "ends": "90"}
    return browser.post(CONSENT, {"sealed": sealed, **usual, **typed})


def answer_in(response: Any) -> dict[str, str]:
    """Return what a page sends to the program, by the address that it leads to."""
    match = REFRESH.search(response.content.decode())
    assert match, response.content.decode()
    query = urlsplit(html.unescape(match[1])).query
    return {name: values[0] for name, values in parse_qs(query).items()}


def sign_in(program: Program, browser: Client, **typed: Any) -> dict[str, Any]:
    if not program.client_id:
        program.register()
    code = answer_in(allow(browser, program.request(), **typed))["code"]
    response = program.exchange(code)
    assert response.status_code == 200, response.content
    answer: dict[str, Any] = response.json()
    return answer
