"""Definitions and servers over REST: to read them, and what staff do to them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import router
from django.db.models import Q
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import inline_serializer
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import CharField, IntegerField, JSONField

from mcp_app.api.base import (
    MatchMissing,
    StaffView,
    Values,
    etags_of_request,
    require_view,
)
from mcp_app.catalog.registry import mcp
from mcp_app.models import DefinitionVersion, Stop
from mcp_app.models.fields import digest
from mcp_app.models.stops import is_stopped
from mcp_app.models.transactions import own_transaction
from mcp_app.models.versions import State
from mcp_app.publishing import publication, row_findings, services
from mcp_app.publishing.stop_targets import TargetMissing

PAGE_SIZE, MAX_PAGE_SIZE = 100, 500
_PAGES: Final[dict[str, Values]] = {"after": int, "limit": int}
_QUERY: Final = {"key": str, "state": tuple(State.values), "q": str, **_PAGES}
_ROLL_BACK: Final = {"version": int, "note": str, "working_copy": bool}
_ROW: Final[dict[str, Any]] = {
    **{each: CharField() for each in ("id", "key", "source", "state", "etag")},
    **{each: IntegerField(allow_null=True) for each in ("published", "to_fix")},
    "stops": JSONField(),
}
_WHOLE: Final = {**_ROW, "working_copy": JSONField(), "findings": JSONField()}
_VERSION: Final[dict[str, Any]] = {
    **{each: IntegerField(allow_null=True) for each in ("number", "restored")},
    **{each: CharField() for each in ("note", "author", "created")},
    "content": JSONField(),
}
_ONE: Final = inline_serializer("WholeDefinition", _WHOLE)
_MANY: Final = inline_serializer("Definition", _ROW, many=True)
_NEXT: Final = IntegerField(allow_null=True)
_PAGE: Final = inline_serializer("Definitions", {"next": _NEXT, "results": _MANY})
_OLD: Final = inline_serializer("Version", _VERSION, many=True)
_HISTORY: Final = inline_serializer("Versions", {"next": _NEXT, "results": _OLD})


class DefinitionView(StaffView):
    """The rows of one model, for staff who may see them in the admin."""

    model: Any = None
    answers = {
        "list": _PAGE,
        "retrieve": _ONE,
        "versions": _HISTORY,
        "destroy": None,
    }
    parameters = {"list": _QUERY, "versions": _PAGES}
    members = {"publish": {"note": str}, "roll_back": _ROLL_BACK}
    if_match = dict.fromkeys(("publish", "unpublish", "roll_back", "destroy"), True)

    def check_permissions(self, request: Request) -> None:
        super().check_permissions(request)
        require_view(request.user, self.model)

    def list(self, request: Request) -> Response:
        """List what there is, by id; `q` is a part of the key or of a text."""
        query, key = self.query, getattr(self.model, "IDENTITY", "slug")
        lookups = {"key": key, "state": "reckoned_state", "after": "pk__gt"}
        conditions = {lookups[each]: query[each] for each in lookups if each in query}
        rows = self._rows().defer("published__content").filter(**conditions)
        if "q" in query:
            texts = (key, "title", "description")
            parts = {f"{each}__icontains": query["q"] for each in texts}
            rows = rows.filter(Q(**parts, _connector=Q.OR))
        page, last = _cut_page(rows.order_by("pk"), query)
        stops = Stop.objects.of_rows(page)
        results = [_describe(row, stops) for row in page]
        return Response({"next": last and last.pk, "results": results})

    def versions(self, request: Request, id: str) -> Response:
        """List what was published, the newest first; `after` is a number."""
        versions = DefinitionVersion.objects.of(self._find(id, self._rows()))
        if "after" in self.query:
            versions = versions.filter(number__lt=self.query["after"])
        page, last = _cut_page(versions.order_by("-number"), self.query)
        results = [_describe_version(version) for version in page]
        return Response({"next": last and last.number, "results": results})

    def retrieve(self, request: Request, id: str) -> Response:
        """Return one, with its working copy and what lint says of that."""
        row = self._find(id, self._rows())
        body = _describe(row, Stop.objects.of_rows([row]))
        body["working_copy"] = content = row.working_content()
        body["findings"] = [*row_findings.judge_row_content(row, content, mcp).findings]
        return Response(body, headers={"ETag": body["etag"]})

    def act(self, request: Request, id: str) -> Response:
        """Do it, if the definition still is what the ETag says."""
        if (tags := etags_of_request(request)) is None:
            raise MatchMissing
        with own_transaction(router.db_for_write(self.model)):
            row = self._find(id, self.model.rows().select_for_update())
            if _etag(row, Stop.objects.of_rows([row])) not in tags:
                raise publication.OutOfDate(_("It changed. Look at it again."))
            self._do(request.user, row)
        gone = self.action == "destroy"
        return Response(status=204) if gone else self.retrieve(request, id)

    publish = unpublish = roll_back = destroy = act

    def _do(self, by: Any, row: Any) -> None:
        seen: dict[str, Any] = {"number": row.published.number if row.published else 0}
        if self.action == "publish":
            seen["looked_at"] = row.content_hash
        elif self.action == "roll_back":
            versions = DefinitionVersion.objects.of(row)
            if (number := self.body.get("version")) is None:
                raise exceptions.ParseError("“version” is missing.")
            seen["version"] = versions.filter(number=number).first()
            if seen["version"] is None:
                raise TargetMissing(f"There is no version {number}.")
        elif self.action == "destroy":
            seen.clear()
        service = services.delete if not seen else getattr(services, self.action)
        service(by, row, **{**self.body, **seen})

    def _rows(self) -> Any:
        rows = self.model.rows().with_states(is_stopped(self.model))
        return rows.select_related("published")

    def _find(self, key: str, rows: Any) -> Any:
        # A longer number may not fit into 64 bits; no row has the key None.
        is_key = re.fullmatch("[0-9]{1,18}", key)
        return get_object_or_404(rows, pk=key if is_key else None)


def _cut_page(rows: Any, query: Mapping[str, int]) -> tuple[Sequence[Any], Any]:
    """Return the rows of a page, and its last one if more follow."""
    size = min(query.get("limit", PAGE_SIZE), MAX_PAGE_SIZE) or PAGE_SIZE
    page = [*rows[: size + 1]]
    return page[:size], page[size - 1] if len(page) > size else None


def _describe(row: Any, stops: Sequence[Stop]) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "key": getattr(row, getattr(row, "IDENTITY", "slug")),
        "source": getattr(row, "source", "here"),
        "state": row.reckoned_state,
        "stops": [stop.pk for stop in stops if stop.holds(row)],
        "published": row.published.number if row.published else None,
        "to_fix": getattr(row, "to_fix", None),
        "etag": _etag(row, stops),
    }


def _describe_version(version: DefinitionVersion) -> dict[str, Any]:
    return {
        "number": version.number,
        "restored": version.restored,
        "note": version.note,
        "author": version.author_name,
        "created": version.created.isoformat(),
        "content": version.read(),
    }


def _etag(row: Any, stops: Sequence[Stop]) -> str:
    """Return a tag that changes with the row, its published version and its stops."""
    stopped = [stop.pk for stop in stops if stop.holds(row)]
    parts = (row.kind_of_row, row.pk, row.lock_version, row.content_hash)
    return f'"{digest(str((*parts, row.published_id, stopped)))[:32]}"'
