"""What clients are told of a server: its name."""

from __future__ import annotations

import pytest
from django.test import override_settings

from mcp_app.account.client_configs import server_name


@pytest.mark.parametrize(
    ("urls", "slug", "name"),
    [
        ("my_shop.urls", "default", "my-shop"),
        ("my_shop.urls", "office", "my-shop-office"),
        ("shop", "default", "shop"),
    ],
)
def test_a_name(urls: str, slug: str, name: str) -> None:
    with override_settings(ROOT_URLCONF=urls):
        assert server_name(slug) == name
