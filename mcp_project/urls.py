"""The paths of the project: a page that says what runs here, the admin, tokens, MCP."""

from __future__ import annotations

from django.apps import apps
from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView, TemplateView

admin.site.site_title = admin.site.site_header = "MCP administration"


class Icon(RedirectView):
    """Browsers ask for it on every page."""

    def get_redirect_url(self, *args: object, **named: object) -> str:
        return static("mcp_app/icon.svg")


urlpatterns = [
    path("favicon.ico", Icon.as_view()),
    path("", TemplateView.as_view(template_name="home.html"), name="home"),
    path("admin/", admin.site.urls),
    path("account/login/", LoginView.as_view(), name="login"),
    path("account/logout/", LogoutView.as_view(), name="logout"),
    path("account/tokens/", include("mcp_app.account_urls")),
    path("api/mcp/", include("mcp_app.api_urls")),
    path("", include("mcp_app.urls")),
    path("", include("mcp_app.oauth_urls")),
    path("", include("mcp_app.discovery_urls")),
]
if apps.is_installed("mcp_project.shop"):
    # The supplier of the demo, which is another site to it.
    urlpatterns.append(path("supplier/", include("mcp_project.shop.supplier")))
