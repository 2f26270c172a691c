"""The API of the extra `drf`: `path("api/mcp/", include("mcp_app.api_urls"))`."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured
from django.urls import path, re_path

from mcp_app.interface.errors import with_remedy

try:
    from mcp_app.api.base import SchemaView, StaffView
    from mcp_app.api.bundles import BundleView
    from mcp_app.api.definitions import DefinitionView
    from mcp_app.api.stops import StopView
except ImportError as error:
    sentence = with_remedy(f"mcp_app.api_urls cannot be used: {error}", error)
    raise ImproperlyConfigured(sentence) from error

from mcp_app.models import EventType, Prompt, Resource, ResourceTemplate, Server, Tool

_NAMES = "tools", "resources", "templates", "prompts", "event-types", "servers"
_MODELS = Tool, Resource, ResourceTemplate, Prompt, EventType, Server
_ACTIONS = {
    "": {"get": "list"},
    "<str:id>/": {"get": "retrieve", "delete": "destroy"},
    "<str:id>/versions/": {"get": "versions"},
    "<str:id>/publish/": {"post": "publish"},
    "<str:id>/unpublish/": {"post": "unpublish"},
    "<str:id>/roll-back/": {"post": "roll_back"},
}
"""By the end of a path: the view's method for each HTTP method."""

urlpatterns = [
    *(
        path(f"{n}/{p}", DefinitionView.as_view({**actions}, basename=n, model=model))
        for n, model in zip(_NAMES, _MODELS, strict=True)
        for p, actions in _ACTIONS.items()
    ),
    path(
        "bundle/",
        BundleView.as_view({"get": "retrieve", "put": "update"}, basename="bundle"),
    ),
    path(
        "stops/", StopView.as_view({"get": "list", "post": "create"}, basename="stops")
    ),
    path("stops/<str:id>/", StopView.as_view({"delete": "destroy"}, basename="stops")),
    path("schema/", SchemaView.as_view({"get": "retrieve"}, basename="schema")),
    re_path("", StaffView.as_view({"options": "options"})),
]
