"""The users' own pages of apps and access tokens, mounted by the site where it wants.

`path("account/tokens/", include("mcp_app.account_urls"))`; whoever is not logged in is
sent to the site's LOGIN_URL.
"""

from __future__ import annotations

from django.urls import path

from mcp_app.account import views
from mcp_app.account import views as app_views

app_name = "mcp_account"

urlpatterns = [
    path("", views.tokens, name="tokens"),
    path("add/", views.add, name="add"),
    path("apps/<int:key>/", app_views.app, name="app"),
    path("apps/end/", app_views.end_all_apps, name="end_all"),
    path("<int:key>/", views.token, name="token"),
    path("<int:key>/replace/", views.replace, name="replace"),
    path("<int:key>/delete/", views.delete, name="delete"),
    path("<int:key>/forget/", views.forget, name="forget"),
]
