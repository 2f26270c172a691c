"""What Django itself says at the endpoint's paths."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.envelope import error_message
from mcp_app.protocol.errors import InternalError

UNWRAPPED = (
    "The MCP endpoint is not served by Django's own application: set"
    " `application = mcp_app.asgi.application(get_asgi_application())` in asgi.py and"
    " run it with an ASGI server."
)


@csrf_exempt
def unwrapped(request: HttpRequest, slug: str = "") -> HttpResponse:
    """Say how the site has to be served (503): here no stream can be kept open."""
    body = jsonrpc.write(error_message(None, InternalError(UNWRAPPED), null_id=False))
    return HttpResponse(body, status=503, content_type="application/json")
