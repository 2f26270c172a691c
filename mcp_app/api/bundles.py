"""Definitions as files for Git, and back: all of a bundle or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import inline_serializer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import CharField, IntegerField, JSONField

from mcp_app.api.base import StaffView, etags_of_request, require_view
from mcp_app.catalog.registry import mcp
from mcp_app.publishing import bundle, rights, services
from mcp_app.publishing.bundle import Bundle, Entry, Outcome
from mcp_app.publishing.bundle.applying import entry_lines
from mcp_app.publishing.bundle.format import natural_key_of
from mcp_app.publishing.stop_targets import KINDS, TargetMissing, find_target

_REPORT = inline_serializer(
    "BundleReport",
    {
        "etag": CharField(allow_null=True),
        "changed": IntegerField(),
        "lacking": JSONField(),
        "entries": JSONField(),
    },
)


class BundleView(StaffView):
    """Reads and writes what `mcp_export` and `mcp_import` do, with the same checks."""

    answers = {"retrieve": {"type": "object"}, "update": _REPORT}
    parameters = {
        "retrieve": {"server": list, "definition": list, "published": ("0", "1")},
        "update": {"check": ("0", "1"), "publish": ("1", "working")},
    }
    members = {"update": None}
    if_match = {"update": False}

    def check_permissions(self, request: Request) -> None:
        super().check_permissions(request)
        rights.require_right(request.user, "bundle")

    def retrieve(self, request: Request) -> HttpResponse:
        """Return a bundle of all, or of these servers and definitions (`tool:name`)."""
        slugs, names = (self.query.get(each, []) for each in ("server", "definition"))
        if any(name.partition(":")[0] not in KINDS for name in names):
            kinds = ", ".join(KINDS)
            raise TargetMissing(
                f"“definition” is a kind ({kinds}), a colon and a name."
            )
        rows: Any = [
            find_target(name, mcp)[1]
            for name in (*(f"server:{slug}" for slug in slugs), *names)
        ]
        if slugs:
            # The rows of the servers are the first ones.
            rows = {*bundle.with_definitions(rows[: len(slugs)]), *rows}
        rows = rows or bundle.everything()
        for model in sorted({*map(type, rows)}, key=str):
            require_view(request.user, model)
        file = bundle.export_bundle(rows, published=self.query.get("published") != "0")
        return HttpResponse(file, content_type="application/json")

    def update(self, request: Request) -> Response:
        """Import a bundle, or say what that would do (`check`).

        Without an ETag of such a check no saved work is overwritten.
        """
        # Read the stream: Django's `body` has a limit for forms, DRF needs a length.
        posted_bundle = bundle.read_bundle(request._request.read(bundle.MOST_BYTES + 1))
        wish = self.query.get("publish")
        posted_bundle = replace(posted_bundle, publishes_working=wish == "working")
        if self.query.get("check") == "1":
            return _compare(request.user, posted_bundle, wish)
        tags, looked_at = etags_of_request(request), None
        if tags is not None:
            # A check of one way of publishing does not allow the other way.
            ends = [tag.strip('"').partition("-") for tag in tags]
            looked_at = next((tag for tag, _dash, end in ends if end == _end(wish)), "")
        by: Any = request.user
        done = services.import_bundle(
            by, posted_bundle, looked_at=looked_at, publish=wish is not None
        )
        rows = {(each.row.kind_of_row, natural_key_of(each.row)): each for each in done}
        entries = []
        for entry in posted_bundle.entries:
            written = rows.get(entry.identity)
            if written is None:
                entries.append(_describe(entry, Outcome.SAME, []))
                continue
            outcome = Outcome.NEW if written.is_new else Outcome.CHANGED
            entries.append(_describe(entry, outcome, [written.sentence]))
        return Response(_report(entries, changed=len(done)))


def _end(wish: str | None) -> str:
    """Return the end of a check's ETag: it says what would be published."""
    return wish or "0"


def _compare(by: Any, read: Bundle, wish: str | None) -> Response:
    publish = wish is not None
    comparison = bundle.compare_bundle(read, mcp)
    needed = bundle.needed_rights(comparison, publish=publish)
    lacking = [each for each in needed if not by.has_perm(f"mcp_app.{each}")]
    entries = []
    for entry in comparison.entries:
        outcome = entry.outcome(publish=publish)
        lines = [] if outcome == Outcome.SAME else entry_lines(entry, publish=publish)
        entries.append(_describe(entry.entry, outcome, lines))
        if entry.conflicts and outcome != Outcome.CANNOT:
            entries[-1]["outcome"] = "conflict"
    etag = f'"{comparison.looked_at}-{_end(wish)}"'
    count = len(comparison.entries_to_write(publish=publish))
    report = _report(entries, etag=etag, changed=count, lacking=lacking)
    return Response(report, headers={"ETag": etag})


def _report(
    entries: Sequence[Any],
    *,
    changed: int,
    etag: str | None = None,
    lacking: Iterable[str] = (),
) -> dict[str, Any]:
    sentences = [*map(rights.lacking_sentence, lacking)]
    return {"etag": etag, "changed": changed, "lacking": sentences, "entries": entries}


def _describe(entry: Entry, outcome: Outcome, why: Iterable[str]) -> dict[str, Any]:
    return {
        "kind": entry.kind,
        "key": entry.key,
        "outcome": outcome.value,
        "why": [*why],
    }
