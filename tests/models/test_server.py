from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import override_settings

from mcp_app.models import Server

pytestmark = pytest.mark.django_db

TOKENS = override_settings(
    MCP={"AUTHENTICATION": {"token": "shop.auth.token", "site": "shop.auth.site"}}
)


def test_the_migrations_make_a_default_server_for_who_has_a_token() -> None:
    server = Server.objects.get()
    assert (server.slug, server.access_names) == ("default", ("token",))
    assert server.published is not None
    assert (server.page_size, server.selection) == (1000, "all")


@pytest.mark.parametrize(
    ("columns", "field", "said"),
    [
        ({"slug": "sse"}, "slug", "cannot be used here"),
        ({"slug": "messages"}, "slug", "cannot be used here"),
        ({"slug": "health"}, "slug", "cannot be used here"),
        ({"slug": "metrics"}, "slug", "cannot be used here"),
        ({"slug": "Shop"}, "slug", "small letters"),
        ({"slug": "-a"}, "slug", "small letters"),
        ({"slug": "a\n"}, "slug", "small letters"),
        ({"slug": "default"}, "slug", "already exists"),
        ({"access": "public token"}, "access", "must be the only entry"),
        ({"access": "tokens"}, "access", "no authentication method “tokens”"),
        ({"selection": "tags"}, "tags", "at least one tag"),
        ({"page_size": 0}, "page_size", "1"),
        ({"instructions": "a\u202eb"}, "instructions", "U+202E"),
        ({"website_url": "javascript:alert(1)"}, "website_url", "https://"),
        ({"website_url": "https://a b"}, "website_url", "not an absolute URI"),
        ({"icons": "{}"}, "icons", "JSON array"),
    ],
)
@TOKENS
def test_what_cannot_be_saved(columns: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Server(**{"slug": "shop", **columns}).full_clean()
    assert said in " ".join(caught.value.message_dict[field])


@TOKENS
def test_who_may_come_in() -> None:
    for access in ("", "public", "token", "site, token"):
        server = Server(slug="shop", access=access, website_url="https://example.org/a")
        server.full_clean()
        assert ", ".join(server.access_names) == access
