"""Where programs look for who issues tokens, and what they find there."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from mcp_app.models import Server
from mcp_app.oauth import endpoints
from tests.oauth.program import ORIGIN, WAYS
from tests.published import published, stopped

pytestmark = pytest.mark.django_db

RESOURCE = "/.well-known/oauth-protected-resource"
SERVER = "/.well-known/oauth-authorization-server"


@pytest.mark.usefixtures("support")
@pytest.mark.parametrize("path", ["/mcp/support", "/mcp/support/", "/mcp/support/sse"])
def test_the_path_is_repeated_letter_for_letter(client: Client, path: str) -> None:
    response = client.get(f"{RESOURCE}{path}")
    assert response.json() == {
        "resource": f"{ORIGIN}{path}",
        "authorization_servers": [ORIGIN],
        "scopes_supported": ["mcp:read", "mcp:change"],
        "bearer_methods_supported": ["header"],
    }
    assert response["Access-Control-Allow-Origin"] == "*"
    assert response["Cache-Control"] == "max-age=300"


def test_all_issuers_of_a_server_are_named(
    client: Client, support: Server, settings: Any
) -> None:
    """This site first, because that is the order of the server's ways in."""
    outside = {
        "path": "mcp_app.authentication.issuer",
        "issuer": "https://id.example.com/realms/staff",
        "claim": "sub",
        "field": "username",
    }
    settings.MCP = {**settings.MCP, "AUTHENTICATION": {**WAYS, "staff": outside}}
    for access, issuers in (
        ("oauth staff", [ORIGIN, outside["issuer"]]),
        ("staff token", [outside["issuer"]]),
    ):
        support.access = access
        support.save()
        published(support)
        found = client.get(f"{RESOURCE}/mcp/support").json()
        assert found["authorization_servers"] == issuers


def test_alone_it_is_the_default_server(client: Client) -> None:
    assert client.get(RESOURCE).status_code == 404
    default = Server.objects.get_or_create(slug="default")[0]
    default.access = "oauth"
    default.save()
    published(default)
    assert client.get(RESOURCE).json()["resource"] == f"{ORIGIN}/mcp"


@pytest.mark.parametrize("access", ["token", "public", ""])
def test_servers_without_an_issuer_have_none(client: Client, access: str) -> None:
    published(Server(slug="sales", access=access))
    assert client.get(f"{RESOURCE}/mcp/sales").status_code == 404


def test_servers_that_cannot_be_used_have_none(client: Client, support: Server) -> None:
    Server.objects.create(slug="draft", access="oauth")
    assert client.get(f"{RESOURCE}/mcp/draft").status_code == 404
    assert client.get(f"{RESOURCE}/mcp/nowhere").status_code == 404
    stopped(support)
    response = client.get(f"{RESOURCE}/mcp/support")
    assert response.status_code == 404
    assert response["Access-Control-Allow-Origin"] == "*"
    assert response.json()["error"] == "not_found"


def test_nothing_is_taken_from_the_host_header(client: Client, support: Server) -> None:
    headers = {"Host": "evil.example"}
    for address in (f"{RESOURCE}/mcp/{support.slug}", SERVER):
        response = client.get(address, headers=headers)
        assert response.status_code == 200
        assert b"evil" not in response.content


def test_a_site_without_a_public_address_has_none(
    client: Client, support: Server, settings: Any
) -> None:
    settings.MCP = {"AUTHENTICATION": WAYS}
    for address in (f"{RESOURCE}/mcp/{support.slug}", SERVER):
        assert client.get(address).status_code == 404


def test_how_programs_sign_in(client: Client) -> None:
    metadata = client.get(SERVER).json()
    assert metadata["issuer"] == ORIGIN
    assert metadata["authorization_endpoint"] == f"{ORIGIN}/mcp-oauth/authorize"
    assert metadata["token_endpoint"] == f"{ORIGIN}/mcp-oauth/token"
    assert metadata["registration_endpoint"] == f"{ORIGIN}/mcp-oauth/register"
    assert metadata["revocation_endpoint"] == f"{ORIGIN}/mcp-oauth/revoke"
    assert metadata["code_challenge_methods_supported"] == ["S256"]
    assert metadata["token_endpoint_auth_methods_supported"][0] == "none"
    assert metadata["client_id_metadata_document_supported"] is True


def test_the_revision_of_a_program_changes_nothing(client: Client) -> None:
    metadata = client.get(SERVER).json()
    for version in ("2025-03-26", "1900-01-01", ""):
        headers = {"MCP-Protocol-Version": version}
        assert client.get(SERVER, headers=headers).json() == metadata


def test_a_site_where_nobody_signs_in_has_no_such_addresses(
    client: Client, settings: Any
) -> None:
    ways = {"token": "mcp_app.authentication.access_token"}
    settings.MCP = {"PUBLIC_URL": ORIGIN, "AUTHENTICATION": ways}
    assert client.get(SERVER).status_code == 404
    for name in ("token", "register", "revoke"):
        assert client.post(f"/mcp-oauth/{name}").status_code == 404


def test_registration_can_be_switched_off(client: Client, settings: Any) -> None:
    settings.MCP = {**settings.MCP, "OAUTH": {"registration": False}}
    assert "registration_endpoint" not in client.get(SERVER).json()
    assert client.post("/mcp-oauth/register").status_code == 404


def test_documents_can_be_switched_off(client: Client, settings: Any) -> None:
    settings.MCP = {**settings.MCP, "OAUTH": {"documents": False}}
    metadata = client.get(SERVER).json()
    assert metadata["client_id_metadata_document_supported"] is False
    assert metadata["registration_endpoint"] == f"{ORIGIN}/mcp-oauth/register"


@pytest.mark.parametrize("name", ["token", "register", "revoke"])
def test_a_preflight(client: Client, name: str) -> None:
    response = client.options(f"/mcp-oauth/{name}")
    assert response.status_code == 204
    assert response["Access-Control-Allow-Origin"] == "*"
    assert "Authorization" in response["Access-Control-Allow-Headers"]
    assert client.get(f"/mcp-oauth/{name}").status_code == 405


def test_wrong_options_close_it(client: Client, support: Server, settings: Any) -> None:
    settings.MCP = {**settings.MCP, "OAUTH": {"schemes": ["javascript"]}}
    assert client.get(SERVER).status_code == 404
    assert client.get(f"{RESOURCE}/mcp/{support.slug}").status_code == 404


@pytest.mark.usefixtures("support")
@pytest.mark.parametrize("path", [f"{RESOURCE}/mcp/support", SERVER])
def test_a_host_is_missing(client: Client, path: str) -> None:
    response = client.get(path, SERVER_NAME="127.0.0.1")
    assert response.status_code == 400
    assert response.json()["error_description"] == "The Host header is missing."
    named = client.get(path, SERVER_NAME="127.0.0.1", HTTP_HOST="testserver")
    assert named.status_code == 200


@pytest.mark.usefixtures("support")
def test_many_who_ask_take_no_connections(
    client: Client, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    """Whatever they ask for: what is there is read once a second."""
    monkeypatch.setattr(endpoints, "SERVERS_MAX_AGE_S", 600)
    monkeypatch.setattr(endpoints, "servers", endpoints.OpenServers())
    assert client.get(f"{RESOURCE}/mcp/support").status_code == 200
    with django_assert_num_queries(0):
        assert client.get(f"{RESOURCE}/mcp/support").status_code == 200
        assert client.get(f"{RESOURCE}/mcp/made-up").status_code == 404
        assert client.get(SERVER).status_code == 200
