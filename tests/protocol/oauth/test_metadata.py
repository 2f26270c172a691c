"""What clients read before they ask."""

from __future__ import annotations

from mcp_app.protocol.oauth.clients import resource_metadata, server_metadata

ORIGIN = "https://shop.example.com"
ENDPOINTS = {
    name: f"{ORIGIN}/mcp-oauth/{name}"
    for name in ("authorize", "token", "register", "revoke")
}


def test_of_a_server() -> None:
    assert resource_metadata(f"{ORIGIN}/mcp/support", [ORIGIN]) == {
        "resource": "https://shop.example.com/mcp/support",
        "authorization_servers": ["https://shop.example.com"],
        "scopes_supported": ["mcp:read", "mcp:change"],
        "bearer_methods_supported": ["header"],
    }


def test_of_the_authorization_server() -> None:
    methods = ["none", "client_secret_basic", "client_secret_post"]
    assert server_metadata(ORIGIN, ENDPOINTS, documents=True, registration=True) == {
        "issuer": ORIGIN,
        "authorization_endpoint": f"{ORIGIN}/mcp-oauth/authorize",
        "token_endpoint": f"{ORIGIN}/mcp-oauth/token",
        "registration_endpoint": f"{ORIGIN}/mcp-oauth/register",
        "revocation_endpoint": f"{ORIGIN}/mcp-oauth/revoke",
        "scopes_supported": ["mcp:read", "mcp:change", "offline_access"],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": [
            *("authorization_code", "refresh_token", "client_credentials")
        ],
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
    }


def test_what_is_switched_off_is_not_there() -> None:
    endpoints = {name: ENDPOINTS[name] for name in ("authorize", "token", "revoke")}
    metadata = server_metadata(ORIGIN, endpoints, documents=False, registration=False)
    assert "registration_endpoint" not in metadata
    assert metadata["client_id_metadata_document_supported"] is False
