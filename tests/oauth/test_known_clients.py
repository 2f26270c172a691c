"""Programs that people have: what they register or say of themselves, and sign in.

The documents and registrations are written as these programs send them; where one has
a document, its address is that of a host of the test.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from django.test import Client

from mcp_app.models import Connection
from tests.oauth.program import Program, page_of, sign_in
from tests.oauth.web import Web

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("support")]

CODE: Final = "authorization_code"
REFRESH: Final = "refresh_token"
JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
DEVICE_CODE: Final = "urn:ietf:params:oauth:grant-type:device_code"
PUBLIC: Final = {"response_types": ["code"], "token_endpoint_auth_method": "none"}
USUAL: Final = {"grant_types": [CODE, REFRESH], **PUBLIC}
CURSOR: Final = "cursor://anysphere.cursor-mcp/oauth/callback"
HERE: Final = "a program on this computer"

DOCUMENTS: Final[dict[str, tuple[dict[str, Any], str, str]]] = {
    "Claude": (
        {
            "client_name": "Claude",
            "client_uri": "https://claude.ai",
            "logo_uri": "https://claude.ai/images/icon.png",
            "redirect_uris": [
                "https://claude.ai/api/mcp/auth_callback",
                "https://claude.com/api/mcp/auth_callback",
            ],
            "grant_types": [CODE, REFRESH, JWT_BEARER],
            **PUBLIC,
        },
        "https://claude.com/api/mcp/auth_callback",
        "claude.com",
    ),
    "Claude Code": (
        {
            "client_name": "Claude Code",
            "redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"],
            **USUAL,
        },
        "http://localhost:53682/callback",
        HERE,
    ),
    "ChatGPT": (
        {
            "client_name": "ChatGPT",
            "redirect_uris": ["https://chatgpt.com/connector_platform_oauth_redirect"],
            "grant_types": [CODE, REFRESH],
            "response_types": ["code"],
            "token_endpoint_auth_method": "private_key_jwt",
            "token_endpoint_auth_methods_supported": ["private_key_jwt", "none"],
            "token_endpoint_auth_signing_alg": "ES256",
            "jwks_uri": "https://chatgpt.com/oauth/jwks.json",
        },
        "https://chatgpt.com/connector_platform_oauth_redirect",
        "chatgpt.com",
    ),
    "Visual Studio Code": (
        {
            "client_name": "Visual Studio Code",
            "client_uri": "https://code.visualstudio.com",
            "redirect_uris": [
                "http://127.0.0.1:33418/",
                "http://127.0.0.1/",
                "https://vscode.dev/redirect",
            ],
            "grant_types": [CODE, REFRESH, DEVICE_CODE],
            **PUBLIC,
            "application_type": "native",
        },
        "http://127.0.0.1:50021/",
        HERE,
    ),
}
"""By name: the document, the redirect of one sign-in, and where the answer goes."""

REGISTRATIONS: Final[dict[str, tuple[dict[str, Any], str, int, str]]] = {
    "Claude": (
        {
            "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"],
            **USUAL,
            "scope": "mcp:read mcp:change",
        },
        "https://claude.ai/api/mcp/auth_callback",
        1,
        "claude.ai",
    ),
    "Visual Studio Code": (
        {
            "client_uri": "https://code.visualstudio.com",
            "redirect_uris": [
                "https://insiders.vscode.dev/redirect",
                "https://vscode.dev/redirect",
                "http://127.0.0.1/",
                "http://127.0.0.1:33418/",
            ],
            "grant_types": [CODE, REFRESH, DEVICE_CODE],
            **PUBLIC,
            "application_type": "native",
        },
        "http://127.0.0.1:50021/",
        4,
        HERE,
    ),
    "Cursor": (
        {
            "redirect_uris": [
                CURSOR,
                "https://www.cursor.com/agents/mcp/oauth/callback",
                "http://localhost:8787/callback",
            ],
            **USUAL,
            "application_type": "web",
        },
        "http://localhost:8787/callback",
        2,
        HERE,
    ),
    "Claude Code": (
        {
            "redirect_uris": ["http://localhost:53682/callback"],
            **USUAL,
        },
        "http://localhost:53682/callback",
        1,
        HERE,
    ),
    "ChatGPT": (
        {
            "redirect_uris": ["https://chatgpt.com/connector_platform_oauth_redirect"],
            "grant_types": [CODE, REFRESH],
            "token_endpoint_auth_method": "none",
        },
        "https://chatgpt.com/connector_platform_oauth_redirect",
        1,
        "chatgpt.com",
    ),
}
"""By name: the request, the redirect used, how many redirects it keeps, and where."""


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document(web: Web, hers: Client, name: str) -> None:
    document, redirect, place = DOCUMENTS[name]
    web.document = {"client_id": web.url, **document}
    program = Program(Client(), client_id=web.url, redirect=redirect)
    page = page_of(hers, program.request())
    assert f"Let {place} use Support desk as you?" in page
    answer = sign_in(program, hers)
    assert program.refresh(answer["refresh_token"]).status_code == 200
    row = Connection.objects.get()
    assert row.client_host == web.host
    assert row.token.name == name


@pytest.mark.parametrize("name", REGISTRATIONS)
def test_a_registration(hers: Client, name: str) -> None:
    members, redirect, kept, place = REGISTRATIONS[name]
    program = Program(Client(), redirect=redirect)
    registered = program.register(client_name=name, **members).json()
    assert len(registered["redirect_uris"]) == kept
    assert registered["grant_types"] == [CODE, REFRESH]
    assert "client_secret" not in registered
    page = page_of(hers, program.request())
    assert f"Let {place} use Support desk as you?" in page
    assert f"It calls itself “{name}”. Nobody has checked that." in page
    answer = sign_in(program, hers)
    assert program.refresh(answer["refresh_token"]).status_code == 200


def test_cursor_where_its_scheme_is_allowed(hers: Client, settings: Any) -> None:
    """Else its own redirect is left out, and it is told which are good."""
    members, *_ = REGISTRATIONS["Cursor"]
    program = Program(Client(), redirect=CURSOR)
    program.register(client_name="Cursor", **members)
    refused = hers.get(program.request())
    assert refused.status_code == 400
    assert "none of the addresses that it may name" in refused.content.decode()
    alone = program.register(client_name="Cursor", redirect_uris=[CURSOR])
    assert (alone.status_code, alone.json()["error"]) == (400, "invalid_redirect_uri")
    settings.MCP = {**settings.MCP, "OAUTH": {"schemes": ["cursor"]}}
    registered = program.register(client_name="Cursor", **members).json()
    assert CURSOR in registered["redirect_uris"]
    page = page_of(hers, program.request())
    assert "After “Allow” you go to" in page
    assert sign_in(program, hers)["scope"] == "mcp:read mcp:change"
