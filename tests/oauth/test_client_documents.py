"""A program with a document: its host is proved, and it signs in."""

from __future__ import annotations

import html
from typing import Any

import pytest
from django.test import Client

from mcp_app.models import Connection
from tests.oauth.program import Program, page_of, sign_in
from tests.oauth.web import HOST, Web

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("support")]


def known(web: Web) -> Program:
    return Program(Client(), client_id=web.url, redirect=f"https://{web.host}/back")


def test_it_signs_in(web: Web, hers: Client) -> None:
    program = known(web)
    assert web.requests == 0
    page = page_of(hers, program.request())
    assert f"“Claude Code”, says {web.host}" in page
    assert f"Let {web.host} use Support desk as you?" in page
    answer = sign_in(program, hers)
    assert answer["refresh_token"]
    row = Connection.objects.get()
    assert (row.client_host, row.client_id) == (web.host, web.url)
    # One fetch serves; nothing is fetched where tokens are exchanged.
    assert web.requests == 1


def test_nothing_is_fetched_for_who_is_not_signed_in(web: Web, client: Client) -> None:
    program = known(web)
    assert client.get(program.request()).status_code == 302
    assert web.requests == 0


def test_on_this_computer_its_host_proves_nothing(web: Web, hers: Client) -> None:
    redirect = "http://127.0.0.1:51123/callback"
    program = Program(Client(), client_id=web.url, redirect=redirect)
    page = page_of(hers, program.request())
    assert f"It says that it is “Claude Code” of {web.host}." in page
    assert "Let a program on this computer use Support desk as you?" in page
    assert "choose Cancel" in page


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": "https://program.example/another.json"},
        {"client_name": None},
        {"redirect_uris": ["https://evil.example/back"]},
        {"token_endpoint_auth_method": "client_secret_post"},
        {"padding": "x" * 17_000},
        {},
    ],
)
def test_a_document_that_cannot_be_used(
    web: Web, hers: Client, changed: dict[str, Any]
) -> None:
    web.document.update(changed)
    web.content_type = "application/json" if changed else "text/html"
    response = hers.get(known(web).request())
    assert response.status_code == 400
    assert 'href="https://program' not in response.content.decode()


def test_its_answer_goes_nowhere_else(web: Web, hers: Client) -> None:
    for redirect in (f"https://{web.host}/back/x", "https://claude.ai/back"):
        program = Program(Client(), client_id=web.url, redirect=redirect)
        response = hers.get(program.request())
        assert response.status_code == 400
        assert "none of the addresses that it may name" in response.content.decode()


def test_a_document_in_a_private_network_is_not_had(
    web: Web, hers: Client, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Its name leads there, or it is named by its address."""
    ca = settings.MCP["OAUTH"]["ca"]
    settings.MCP = {**settings.MCP, "OAUTH": {"ca": ca}}
    for url in (web.url, web.url.replace(HOST, "127.0.0.1")):
        web.document["client_id"] = url
        program = Program(Client(), client_id=url, redirect=f"https://{web.host}/back")
        response = hers.get(program.request())
        assert response.status_code == 400
        page = html.unescape(response.content.decode())
        assert f"This site could not fetch {url}" in page
        assert 'MCP["OAUTH"]["documents"] to False' in page
    assert web.requests == 0
    assert 'set MCP["OAUTH"]["documents"] to False' in caplog.text


def test_a_site_that_fetches_nothing(web: Web, hers: Client, settings: Any) -> None:
    options = {**settings.MCP["OAUTH"], "documents": False}
    settings.MCP = {**settings.MCP, "OAUTH": options}
    response = hers.get(known(web).request())
    assert response.status_code == 400
    assert "Remove the connection there and add it" in response.content.decode()
    assert web.requests == 0


def test_it_needs_no_registration(web: Web, hers: Client, settings: Any) -> None:
    options = {**settings.MCP["OAUTH"], "registration": False}
    settings.MCP = {**settings.MCP, "OAUTH": options}
    program = known(web)
    assert sign_in(program, hers)["token_type"] == "Bearer"


def test_the_host_of_a_document_may_be_kept_out(
    web: Web, hers: Client, settings: Any
) -> None:
    options = {**settings.MCP["OAUTH"], "clients": [f"!{HOST}"]}
    settings.MCP = {**settings.MCP, "OAUTH": options}
    response = hers.get(known(web).request())
    assert f"does not let programs of {web.host} in" in response.content.decode()
