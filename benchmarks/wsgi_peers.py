"""What stands beside the endpoint under gunicorn, in a site with the same settings.

`PEER=floor` is an empty view: it parses the body with orjson, and sends the bytes and
headers of the file that FLOOR_ANSWER names, with the id put in.  `PEER=mcpz` is the
benchmark's tool, served by django-mcpz.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import orjson
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.wsgi_settings")
application = get_wsgi_application()

View = Callable[[HttpRequest], HttpResponse]


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
    view: View = server
    return view


urlpatterns = [path("mcp", {"floor": floor, "mcpz": mcpz}[os.environ["PEER"]]())]
