"""The challenge, and what it does not name yet."""

from __future__ import annotations

import pytest

from mcp_app.auth.site_requests import WRONG, insufficient_scope, unauthenticated
from mcp_app.server.handlers import HANDLERS
from tests.asgi_client import Client
from tests.wire.middleware import WireCheck


@pytest.mark.parametrize(
    ("given", "challenge"),
    [
        (("Who?",), 'Bearer realm="mcp"'),
        (
            ("It is over.", WRONG),
            'Bearer realm="mcp", error="invalid_token",'
            ' error_description="It is over."',
        ),
        (('a "b"', WRONG), 'Bearer realm="mcp", error="invalid_token"'),
    ],
)
def test_what_a_client_is_told(given: tuple[str, ...], challenge: str) -> None:
    refused = unauthenticated(*given)
    assert (refused.http_status, refused.message) == (401, given[0])
    assert refused.headers == {"WWW-Authenticate": challenge}


def test_a_client_whose_token_allows_too_little() -> None:
    for metadata, end in (
        ("", ""),
        ("https://a/b", ', resource_metadata="https://a/b"'),
    ):
        refused = insufficient_scope("Too little.", "mcp:read", metadata)
        assert (refused.http_status, refused.message) == (403, "Too little.")
        assert refused.headers == {
            "WWW-Authenticate": 'Bearer realm="mcp", error="insufficient_scope",'
            f' scope="mcp:read"{end}'
        }


@pytest.mark.parametrize(
    "path",
    [
        f"{before}/.well-known/{name}{after}"
        for name in ("oauth-protected-resource", "oauth-authorization-server")
        for before, after in (
            ("", ""),
            ("", "/mcp"),
            ("", "/mcp/private"),
            ("/mcp", ""),
        )
    ],
)
async def test_there_is_no_metadata_yet(application: WireCheck, path: str) -> None:
    found = await Client(application, path=path).visit("GET").begun()
    assert found.status == 404
    await found.leave()


@pytest.mark.parametrize("version", ["2024-11-05", "2026-07-28"])
async def test_no_method_is_answered_before_the_caller_is_known(
    application: WireCheck, version: str
) -> None:
    """`initialize` and `server/discover` neither."""
    client = Client(application, version, path="/mcp/private")
    for method in (*HANDLERS, "unheard/of"):
        found = await client.request(method)
        assert found.status == 401, method
        assert found.error["message"].startswith("Authentication is required."), method


async def test_no_client_is_sent_to_look_for_it(application: WireCheck) -> None:
    client = Client(application, path="/mcp/private")
    found = await client.request("tools/list")
    assert found.status == 401
    assert "resource_metadata" not in found.headers["www-authenticate"]
