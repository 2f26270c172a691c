"""Plain views at the addresses of `ninja.json`, which django-ninja 1.7.1 wrote.

They say what reached them.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import include, path


def orders(request: HttpRequest, **values: Any) -> HttpResponse:
    if request.method == "DELETE":
        return HttpResponse(status=204)
    reached = {
        "values": values,
        "query": dict(request.GET.lists()),
        "body": request.body.decode(),
        "kind": request.content_type,
        "user": str(request.user),
        "reason": request.headers.get("X-Reason"),
    }
    return JsonResponse(reached, status=201 if request.method == "POST" else 200)


def partner(request: HttpRequest) -> HttpResponse:
    return HttpResponse("Unauthorized", status=401)


urlpatterns = [
    path("ninja/orders", orders),
    path("ninja/", include([path("orders/<int:order_id>", orders)])),
    path("ninja/orders/<number>/note", orders),
    path("ninja/orders/<number>/scan", orders),
    path("ninja/partner", partner),
    path("", include("mcp_app.urls")),
    path("admin/", admin.site.urls),
]
