"""The server that is there from the first moment."""

from __future__ import annotations

import pytest

from mcp_app.models import DefinitionVersion, Server, State

pytestmark = pytest.mark.django_db


def test_it_is_published_as_an_empty_form_would_be() -> None:
    server = Server.objects.get()
    assert server.slug == "default"
    assert server.state == State.PUBLISHED
    assert server.content_hash == server.working_hash()
    assert DefinitionVersion.objects.of(server).get() == server.published


def test_it_lets_in_who_has_a_token_as_any_new_server_does() -> None:
    assert Server.objects.get().access_names == Server().access_names == ("token",)
