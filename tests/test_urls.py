"""The endpoint's names in a URLconf."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import resolve, reverse

from mcp_app.transports.view import UNWRAPPED, unwrapped


def test_names() -> None:
    assert reverse("mcp_app:endpoint") == "/mcp"
    assert reverse("mcp_app:server", args=["staff"]) == "/mcp/staff"


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp/staff", "/mcp/staff/"])
def test_paths(path: str) -> None:
    assert resolve(path).func is unwrapped


@pytest.mark.parametrize("method", ["get", "post", "delete", "options"])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp/staff"])
def test_django_alone_says_how_it_is_to_be_served(method: str, path: str) -> None:
    answer = getattr(Client(enforce_csrf_checks=True), method)(path)
    assert answer.status_code == 503
    assert answer["Content-Type"] == "application/json"
    assert answer.json()["error"]["message"] == UNWRAPPED
