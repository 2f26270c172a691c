"""What Django says where it serves the endpoint's paths itself."""

from __future__ import annotations

from typing import Final

import pytest
from django.test import Client

from tests.wire.validation import VERSIONS, wire_validator

PATHS: Final = ["/mcp", "/mcp/", "/mcp/shop", "/mcp/shop/", "/mcp/health"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["post", "get", "delete", "options"])
def test_unwrapped(client: Client, path: str, method: str) -> None:
    found = getattr(client, method)(path)
    assert found.status_code == 503
    message = found.json()
    assert wire_validator(VERSIONS[-1]).check(message) == []
    assert "asgi.py" in message["error"]["message"]


def test_csrf_is_not_asked_for() -> None:
    strict = Client(enforce_csrf_checks=True)
    found = strict.post("/mcp", "{}", content_type="application/json")
    assert found.status_code == 503


def test_a_foreign_host(client: Client) -> None:
    assert client.get("/mcp", headers={"host": "evil.example"}).status_code == 400
