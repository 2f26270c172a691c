"""A program that signs in with secrets that nobody may read again, and is refused."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

import httpx

from tests.attacks.canaries import Canaries
from tests.oauth.program import AUTHORIZE, CONSENT, answer_in, challenge_of, sealed_in

ORIGIN: Final = "http://localhost"
PASSWORD: Final = "canary-password-of-ana"
VERIFIER: Final = "canary-verifier-" + "7" * 40
REDIRECT: Final = "http://127.0.0.1:1/back"
STATE: Final = "canary-state-of-a-program-55667788"
TOKEN: Final = "/mcp-oauth/token"


class Program:
    """Whatever it shows is noted, and each error that it is answered with."""

    def __init__(self, url: str, canaries: Canaries) -> None:
        self._canaries = canaries
        self._url = f"{url}/by-token"
        site = url.removesuffix("/mcp")
        self._http = httpx.Client(base_url=site, follow_redirects=True)
        answer = self._http.post(
            "/mcp-oauth/register",
            json={
                "client_name": "Canaries",
                "redirect_uris": [REDIRECT],
                "grant_types": ["authorization_code", "refresh_token"],
            },
        )
        self.client_id = answer.json()["client_id"]

    def lets_in(self) -> str:
        """Log in, open the page, press *Allow*; return the code."""
        note = self._canaries.note
        self._http.get("/admin/login/")
        self._submit("/admin/login/", username="ana", password=PASSWORD)
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": REDIRECT,
            "state": STATE,
            "resource": f"{ORIGIN}/mcp/by-token",
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
        }
        for wrong in ({"redirect_uri": "https://evil.example"}, {"state": "x" * 9_000}):
            self.taken(self._http.get(AUTHORIZE, params={**asked, **wrong}))
        page = self._http.get(AUTHORIZE, params=asked).text
        sealed = note("consent", html.unescape(sealed_in(page)))
        self.taken(self._submit(CONSENT, sealed=sealed[:-2]))
        chosen = {"may": "change", "which": "all", "ends": "90"}
        done = self._submit(CONSENT, sealed=sealed, **chosen)
        return note("code", answer_in(done)["code"])

    def _submit(self, path: str, **sent: str) -> httpx.Response:
        sent["csrfmiddlewaretoken"] = self._http.cookies["csrftoken"]
        return self._http.post(path, data=sent)

    def asks(self, path: str = TOKEN, **form: str) -> dict[str, Any]:
        sent = {"client_id": self.client_id, **form}
        answer = self.taken(self._http.post(path, data=sent))
        return answer.json() if answer.content else {}

    def exchanges(self, code: str, **changed: str) -> dict[str, Any]:
        form = {"code": code, "redirect_uri": REDIRECT, "code_verifier": VERIFIER}
        return self.asks(grant_type="authorization_code", **{**form, **changed})

    def shows(self, bearer: str) -> None:
        headers = {"Authorization": f"Bearer {bearer}"}
        self.taken(httpx.post(self._url, headers=headers, json={}))
        self.taken(httpx.post(f"{self._url}?access_token={bearer}", json={}))

    def close(self) -> None:
        self._http.close()

    def taken(self, answer: httpx.Response) -> httpx.Response:
        if answer.status_code >= 400:
            said = repr(dict(answer.headers)).encode() + answer.content
            self._canaries.errors.append(said)
        return answer


def signs_in(url: str, token: str, canaries: Canaries) -> None:
    """Sign in, do everything twice or wrong, and go; `token` is a machine's."""
    note = canaries.note
    note("verifier", VERIFIER)
    with closing(Program(url, canaries)) as program:
        _signs_in(program, token, note)


def _signs_in(program: Program, token: str, note: Callable[[str, str], str]) -> None:
    code = program.lets_in()
    assert "error" in program.exchanges(code, code_verifier=f"{VERIFIER}x")
    assert "error" in program.exchanges(code, client_id="mcp_cl_none")
    answer = program.exchanges(code)
    for step in range(2):
        key, refresh = answer["access_token"], answer["refresh_token"]
        note("key of an app", key)
        note("refresh token", refresh)
        for shown in (key, refresh, code, f"{key}x"):
            program.shows(shown)
        asked = {"grant_type": "refresh_token", "refresh_token": refresh}
        assert "error" in program.asks(f"{TOKEN}?refresh_token={refresh}", **asked)
        assert "error" in program.asks(**asked, client_id="mcp_cl_none")
        if step == 0:
            answer = program.asks(**asked)
    machine = {"grant_type": "client_credentials", "client_id": token[:10]}
    target = {"resource": f"{ORIGIN}/mcp/by-token"}
    assert "error" in program.asks(**machine, client_secret=f"{token}x", **target)
    assert "error" in program.asks(**machine, client_secret=token, resource="x")
    assert "error" not in program.asks(**machine, client_secret=token, **target)
    head = base64.urlsafe_b64encode(json.dumps({"alg": "none"}).encode()).decode()
    program.shows(note("JWT", f"{head.rstrip('=')}.canaryPayloadOfAToken0.canarySign0"))
    assert "error" in program.exchanges(code)
    assert "error" in program.asks(**asked)
    program.asks("/mcp-oauth/revoke", token=refresh)
