"""The paths of the help desk, and of the document that describes them."""

from __future__ import annotations

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView
from rest_framework.routers import SimpleRouter

from tests.helpdesk.api import TicketViewSet

router = SimpleRouter()
router.register("tickets", TicketViewSet)

urlpatterns = [
    path("api/", include(router.urls)),
    path("api/schema/", SpectacularAPIView.as_view()),
    path(
        "api/schema/3.1/",
        SpectacularAPIView.as_view(custom_settings={"OAS_VERSION": "3.1.0"}),
    ),
]
