"""Where programs sign in: `path("", include("mcp_app.oauth_urls"))`, at the root.

The addresses of the metadata are fixed by RFC 8414 and RFC 9728.
"""

from __future__ import annotations

from django.urls import path, re_path

from mcp_app.oauth import consent, endpoints

app_name = "mcp_oauth"

urlpatterns = [
    re_path(
        r"^\.well-known/oauth-protected-resource(?P<path>/.*)?$",
        endpoints.protected_resource,
        name="resource",
    ),
    path(
        ".well-known/oauth-authorization-server",
        endpoints.authorization_server,
        name="server",
    ),
    path("mcp-oauth/authorize", consent.authorize, name="authorize"),
    path("mcp-oauth/consent", consent.receive_consent, name="consent"),
    path("mcp-oauth/token", endpoints.issue_token, name="token"),
    path("mcp-oauth/register", endpoints.register_program, name="register"),
    path("mcp-oauth/revoke", endpoints.revoke_token, name="revoke"),
]
