"""What clients read before they ask: RFC 9728 and RFC 8414."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.oauth.authorization import OFFLINE, SCOPES
from mcp_app.protocol.oauth.client_metadata import GRANTS

# "none" first: some clients read no further.
_METHODS: Final = ("none", "client_secret_basic", "client_secret_post")


def resource_metadata(resource: str, issuers: Sequence[str]) -> JsonObject:
    """The metadata of a server at the address `resource` (RFC 9728 §2).

    `issuers` are the authorization servers whose tokens it takes, the first of them
    the one that clients should ask.
    """
    return {
        "resource": resource,
        "authorization_servers": list(issuers),
        "scopes_supported": list(SCOPES),
        "bearer_methods_supported": ["header"],
    }


def server_metadata(
    issuer: str, endpoints: Mapping[str, str], *, documents: bool, registration: bool
) -> JsonObject:
    """The metadata of our authorization server (RFC 8414 §2).

    `endpoints` has the URLs of `authorize`, `token`, `revoke` and `register`, the
    last of which is not needed without `registration`.  `documents` says whether
    clients with documents are taken.
    """
    metadata = {
        "issuer": issuer,
        "authorization_endpoint": endpoints["authorize"],
        "token_endpoint": endpoints["token"],
        "revocation_endpoint": endpoints["revoke"],
    }
    if registration:
        metadata["registration_endpoint"] = endpoints["register"]
    return {
        **metadata,
        **_abilities(),
        "client_id_metadata_document_supported": documents,
    }


def _abilities() -> JsonObject:
    return {
        "scopes_supported": [*SCOPES, OFFLINE],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": [*GRANTS, "client_credentials"],
        "token_endpoint_auth_methods_supported": list(_METHODS),
        "revocation_endpoint_auth_methods_supported": list(_METHODS),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }
