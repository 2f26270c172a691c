"""The home page as tests read it."""

from __future__ import annotations

from typing import Any

from django.test import Client
from django.urls import reverse


def home(client: Client, query: str = "") -> Any:
    """Return the response of the home page."""
    response = client.get(reverse("admin:app_list", args=["mcp_app"]) + query)
    assert response.status_code == 200
    return response
