"""What stands beside the endpoint under gunicorn, in a site with the same settings.

`PEER=floor` is an empty view: it parses the body with orjson, and sends the bytes and
headers of the file that FLOOR_ANSWER names, with the id put in.  The others have a
tool `look_up`, which asks the database for one row: `PEER=mcpz` serves it and the
benchmark's tool with django-mcpz, `PEER=ours` with this project, `PEER=front` so and
with `mcp_app.wsgi` in front of the site, and `PEER=view` is a view that does the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import orjson
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, include, path
from django.views.decorators.csrf import csrf_exempt

import mcp_app.wsgi

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.wsgi_settings")
PEER = os.environ["PEER"]
application = get_wsgi_application()
if PEER == "front":
    application = mcp_app.wsgi.application(application)  # type: ignore[assignment]

View = Callable[[HttpRequest], HttpResponse]


def look_up(pk: int) -> str:
    """Return the name of a row."""
    from django.contrib.auth.models import Permission  # noqa: PLC0415

    return Permission.objects.get(pk=pk).codename


def floor() -> View:
    """Return the view that nobody can do less than."""
    answer = json.loads(Path(os.environ["FLOOR_ANSWER"]).read_text())
    before, after = answer["before"].encode(), answer["after"].encode()
    headers = dict(answer["headers"])

    @csrf_exempt
    def view(request: HttpRequest) -> HttpResponse:
        identifier = orjson.loads(request.body)["id"]
        body = b"%b%d%b" % (before, identifier, after)
        return HttpResponse(body, headers=headers)

    return view


def mcpz() -> View:
    """Return django-mcpz's view of the same tool."""
    import msgspec  # noqa: PLC0415
    from django_mcpz.server import MCPServer, public  # noqa: PLC0415

    numbers = msgspec.defstruct("Numbers", [("a", int), ("b", int)])
    total = msgspec.defstruct("Sum", [("result", int)])

    def add(request: HttpRequest, params: numbers) -> total:  # type: ignore[valid-type]
        return total(params.a + params.b)  # type: ignore[attr-defined]

    add.__annotations__.update(params=numbers)
    add.__annotations__["return"] = total
    server = MCPServer(name="benchmarks", version="1", auth=public)
    server.tool(name="drill_add", description="Add two numbers.")(add)
    key = msgspec.defstruct("Key", [("pk", int)])
    row = msgspec.defstruct("Row", [("result", str)])

    def look(request: HttpRequest, params: key) -> row:  # type: ignore[valid-type]
        return row(look_up(params.pk))  # type: ignore[attr-defined]

    look.__annotations__.update(params=key)
    look.__annotations__["return"] = row
    server.tool(name="look_up", description="Look up a row.")(look)
    view: View = server
    return view


def looking() -> View:
    """Return a view that answers a call of `look_up`, and knows no protocol."""

    @csrf_exempt
    def view(request: HttpRequest) -> HttpResponse:
        message = orjson.loads(request.body)
        found = look_up(message["params"]["arguments"]["pk"])
        result = {
            "content": [{"type": "text", "text": found}],
            "structuredContent": {"result": found},
        }
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return HttpResponse(orjson.dumps(answer), content_type="application/json")

    return view


def ours() -> list[URLPattern | URLResolver]:
    """Return the addresses of this project's endpoint, with the tool."""
    from mcp_app import mcp  # noqa: PLC0415

    mcp.tool(read_only=True)(look_up)
    return [path("", include("mcp_app.urls"))]


if PEER in ("ours", "front"):
    urlpatterns = ours()
else:
    views = {"floor": floor, "mcpz": mcpz, "view": looking}
    urlpatterns = [path("mcp", views[PEER]())]
