"""Where programs sign in: `path("", include("mcp_app.oauth_urls"))`, at the root.

The addresses of the metadata are fixed by RFC 8414 and RFC 9728.
"""

from __future__ import annotations

from django.urls import path, re_path

from mcp_app.oauth import consent_views, metadata_views, token_views

app_name = "mcp_oauth"

urlpatterns = [
    re_path(
        r"^\.well-known/oauth-protected-resource(?P<path>/.*)?$",
        metadata_views.resource,
        name="resource",
    ),
    path(
        ".well-known/oauth-authorization-server",
        metadata_views.server,
        name="server",
    ),
    path("mcp-oauth/authorize", consent_views.authorize, name="authorize"),
    path("mcp-oauth/consent", consent_views.consent, name="consent"),
    path("mcp-oauth/token", token_views.token, name="token"),
    path("mcp-oauth/register", token_views.register, name="register"),
    path("mcp-oauth/revoke", token_views.revoke, name="revoke"),
]
