"""The page at the root."""

from __future__ import annotations

from django.test import Client


def test_the_root_names_the_endpoint_and_links_the_admin() -> None:
    response = Client().get("/", headers={"Host": "127.0.0.1:8000"})
    assert response.status_code == 200
    assert "http://127.0.0.1:8000/mcp" in response.text
    assert 'href="/admin/"' in response.text
