"""A site that programs can sign in to, a person, and a program."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from mcp_app.egress.documents import fetch
from mcp_app.models import Server
from mcp_app.oauth import consent
from mcp_app.oauth.clients import Documents, fetch_document
from mcp_app.process.rates import MinuteLimit
from tests.account.conftest import ana, hers
from tests.oauth.program import ORIGIN, WAYS, Program
from tests.oauth.web import Web
from tests.oauth.web import web as serving
from tests.published import published

__all__ = ["ana", "hers"]


@pytest.fixture(autouse=True)
def site(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MCP = {**settings.MCP, "PUBLIC_URL": ORIGIN, "AUTHENTICATION": WAYS}
    settings.ALLOWED_HOSTS = ["*"]
    # The same person may have opened too many in another test.
    monkeypatch.setattr(consent, "page_limit", MinuteLimit(60))


@pytest.fixture
def support() -> Server:
    """A server that programs sign in to, or come to with a token."""
    return published(Server(slug="support", title="Support desk", access="oauth token"))


@pytest.fixture
def program(client: Client) -> Program:
    return Program(Client())


@pytest.fixture
def web(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Web]:
    """Serve the document of a program, which this site may fetch."""
    settings.MCP = {
        **settings.MCP,
        "OAUTH": {
            "networks": ["127.0.0.1/32"],
            "ca": str(tmp_path / "certificate.pem"),
        },
    }
    here = partial(fetch, lookup=lambda *_: ["127.0.0.1"])
    monkeypatch.setattr("mcp_app.oauth.clients.fetch", here)
    # The same person may have fetched too often in another test.
    monkeypatch.setattr("mcp_app.oauth.clients.documents", Documents(fetch_document))
    with serving(tmp_path) as server:
        server.document = {
            "client_id": server.url,
            "client_name": "Claude Code",
            "redirect_uris": [
                f"https://{server.host}/back",
                "http://127.0.0.1/callback",
            ],
            "grant_types": ["authorization_code", "refresh_token", "jwt-bearer"],
            "token_endpoint_auth_method": "none",
        }
        yield server
