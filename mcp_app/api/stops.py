"""Stopping over REST, from an alarm: the same stops that staff and commands make."""

from __future__ import annotations

import re
from typing import Any, Final

from django.http import Http404
from drf_spectacular.utils import inline_serializer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import CharField, IntegerField

from mcp_app.api.base import StaffView
from mcp_app.catalog.registry import mcp
from mcp_app.models import Stop
from mcp_app.models.stops import Running
from mcp_app.publishing import rights, services
from mcp_app.publishing.stop_targets import KINDS, find_target

_COLUMNS: Final = "scope", "kind", "running", "reason", "cancelled"
# The last column, “cancelled”, is a number and no text.
_FIELDS: Final[dict[str, Any]] = {
    "id": IntegerField(),
    **{each: CharField() for each in ("what", "name", "by", "since", *_COLUMNS[:-1])},
    "cancelled": IntegerField(),
}
_ONE: Final = inline_serializer("Stop", _FIELDS)
_MANY: Final = inline_serializer("Stop", _FIELDS, many=True)


class StopView(StaffView):
    """What is stopped now, by whom, and why."""

    answers = {
        "list": inline_serializer("Stops", {"results": _MANY}),
        "create": _ONE,
        "destroy": None,
    }
    members = {"create": {"what": str, "reason": str, "running": tuple(Running.values)}}

    def check_permissions(self, request: Request) -> None:
        super().check_permissions(request)
        rights.require_right(request.user, "stop")

    def list(self, request: Request) -> Response:
        """List the stops that are active."""
        return Response({"results": [_describe(row) for row in Stop.objects.on()]})

    def create(self, request: Request) -> Response:
        """Stop `everything`, `changes`, `server:shop` or `tool:weather` at once."""
        by: Any = request.user
        scope, row = find_target(self.body.pop("what", ""), mcp)
        stop = services.stop(by, scope, row, **self.body)
        stop.refresh_from_db()
        return Response(_describe(stop), status=201)

    def destroy(self, request: Request, id: str) -> Response:
        """Start again what this stop holds; other stops stay."""
        keys = [int(id)] if re.fullmatch("[0-9]{1,18}", id) else []
        by: Any = request.user
        if not services.start(by, keys):
            raise Http404
        return Response(status=204)


def _describe(stop: Stop) -> dict[str, Any]:
    """Return a stop; `what` is that of a request that would stop the same target."""
    what = stop.scope
    if stop.kind:
        names = {kind: word for word, kind in KINDS.items()}
        what = f"{names.get(stop.kind, stop.kind)}:{stop.served}"
    return {
        "id": stop.pk,
        "what": what,
        "name": stop.what,
        "by": stop.by_name,
        "since": stop.at.isoformat(),
        **{each: getattr(stop, each) for each in _COLUMNS},
    }
