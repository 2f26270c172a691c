"""Another site for the demo, which it serves itself: a supplier with an API.

`make run` names it in the settings, with a key that changes with each start.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from mcp_project.shop.models import Delivery, Product
from mcp_project.shop.supplier_key import HEADER, NAME

MOST_PIECES: Final = 1_000

View = Callable[..., HttpResponse]


def _with_key(view: View) -> View:
    """Answer 401 without the key of the settings; without a key there is no site."""

    @wraps(view)
    def checked(request: HttpRequest, **arguments: Any) -> HttpResponse:
        site = settings.MCP.get("HTTP", {}).get(NAME, {})
        key = site.get("secret_headers", {}).get(HEADER, "")
        if not key:
            return HttpResponse(status=404)
        if not secrets.compare_digest(request.headers.get(HEADER, ""), key):
            return JsonResponse({"error": "The key is wrong."}, status=401)
        return view(request, **arguments)

    return checked


@require_GET
@_with_key
def article(request: HttpRequest, sku: str) -> HttpResponse:
    """Say what an article costs, and when it can be here."""
    product = get_object_or_404(Product, sku__iexact=sku)
    days = 2 + len(product.name) % 5
    return JsonResponse(
        {
            "article": {
                "sku": product.sku,
                "name": product.name,
                "price": str(product.price * 6 / 10),
                "delivery_days": days,
            }
        }
    )


@csrf_exempt
@require_POST
@_with_key
def order(request: HttpRequest) -> HttpResponse:
    """Take an order of `{"sku": "…", "quantity": 5}`."""
    try:
        given = json.loads(request.body)
        quantity = int(given["quantity"])
        product = Product.objects.get(sku__iexact=given["sku"])
    except (ValueError, KeyError, TypeError, Product.DoesNotExist):
        said = 'Send {"sku": "…", "quantity": 5} with an article that there is.'
        return JsonResponse({"error": said}, status=422)
    if not 1 <= quantity <= MOST_PIECES:
        said = f"The quantity must be from 1 to {MOST_PIECES}."
        return JsonResponse({"error": said}, status=422)
    delivery = Delivery.objects.create(product=product, quantity=quantity)
    answer = {"number": delivery.pk, "sku": product.sku, "quantity": quantity}
    return JsonResponse({"order": answer}, status=201)


urlpatterns = [
    path("articles/<str:sku>", article),
    path("orders", order),
]
