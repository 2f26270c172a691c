"""The users' own pages of apps and access tokens, mounted by the site where it wants.

`path("account/tokens/", include("mcp_app.account_urls"))`; whoever is not logged in is
sent to the site's LOGIN_URL.
"""

from __future__ import annotations

from django.urls import path

from mcp_app.account import call_presentation, views

app_name = "mcp_account"

urlpatterns = [
    path("", views.token_list, name="tokens"),
    path("add/", views.add_token, name="add"),
    path("link/", views.take_token, name="take"),
    path("calls/", call_presentation.call_list, name="calls"),
    path("calls/<int:key>/", call_presentation.call_page, name="call"),
    path("apps/<int:key>/", views.connected_app_page, name="app"),
    path("apps/<int:key>/watches/<int:pk>/end/", views.end_watch, name="end_watch"),
    path("apps/end/", views.end_all_apps, name="end_all"),
    path("<int:key>/", views.token_page, name="token"),
    path("<int:key>/replace/", views.replace_token, name="replace"),
    path("<int:key>/delete/", views.delete_token, name="delete"),
    path("<int:key>/forget/", views.forget_token, name="forget"),
]
