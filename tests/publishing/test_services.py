"""What staff do: without the right nothing, with it the thing and one line."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.exceptions import PermissionDenied

from mcp_app.catalog.registry import mcp
from mcp_app.models import Change, Stop, Tool
from mcp_app.publishing import bundle, services
from tests.published import published, stopped
from tests.publishing.bundle.content import tool

DEEDS = {
    "publish": "publish publish_all roll_back unpublish unpublish_all",
    "stop": "stop stop_all start start_all",
    "bundle": "import_bundle",
}


@pytest.mark.django_db
@pytest.mark.parametrize("deed", " ".join(DEEDS.values()).split())
def test_a_deed_needs_its_right_and_leaves_a_line(deed: str) -> None:
    right = next(each for each in DEEDS if deed in DEEDS[each].split())
    row = stopped(published(tool(title="One")))
    one: dict[str, Any] = {"row": row, "number": 2}
    again = {**one, "version": row.published}
    row.title = "Two"
    published(row).title = "Three"
    row.save()
    hashed = row.content_hash
    read = bundle.read_bundle(bundle.export_bundle([row]).replace(b"Three", b"Four"))
    looked_at = bundle.compare_bundle(read, mcp).looked_at
    file = {"read": read, "looked_at": looked_at, "origin": "a.json"}
    deeds: dict[str, tuple[str, dict[str, Any]]] = {
        "publish": ("Published version 3.", {**one, "looked_at": hashed}),
        "publish_all": ("Published version 3.", {"looked_at": {row: (hashed, 2)}}),
        "roll_back": ("Published version 1 again as version 3.", again),
        "unpublish": ("Taken off the lists.", one),
        "unpublish_all": ("Taken off the lists.", {"published": Tool.rows()}),
        "stop": ("Stopped Everything; running calls: cancel.", {"scope": "everything"}),
        "stop_all": ("Stopped.", {"rows": [row]}),
        "start": ("Started again: hours.", {"keys": [Stop.objects.get().pk]}),
        "start_all": ("Started.", {"stopped": [row]}),
        "import_bundle": ("The working copy was imported from a.json.", file),
    }
    line, options = deeds[deed]
    kim, changes = User.objects.create_user("kim"), Change.objects.count()
    with pytest.raises(PermissionDenied, match="needs the right “Can "):
        getattr(services, deed)(kim, **options)
    assert (Change.objects.count(), LogEntry.objects.count()) == (changes, 0)
    kim.user_permissions.add(Permission.objects.get(codename=right))
    getattr(services, deed)(User.objects.get(), **options)
    assert Change.objects.count() > changes
    logged = LogEntry.objects.values_list("user", "change_message")
    assert list(logged) == [(kim.pk, line)]
