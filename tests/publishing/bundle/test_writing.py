"""Files that people can review."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import override_settings

from mcp_app.models import Blob, PublishedRow, Server, Tool
from mcp_app.models.versions import hash_of
from mcp_app.publishing import bundle
from mcp_app.publishing.bundle import BundleRefused, writing
from mcp_app.publishing.bundle.format import CHOICES, LISTS, natural_key_of
from tests.published import published
from tests.publishing.bundle.content import entry, exported, fill, overlay, tool

pytestmark = pytest.mark.django_db


def keys(file: dict[str, Any]) -> dict[str, list[str]]:
    return {
        kind: [next(iter(each.values())) for each in entries]
        for kind, entries in file.items()
        if isinstance(entries, list)
    }


def test_the_same_content_is_the_same_bytes_in_lines() -> None:
    fill()
    first = bundle.export_bundle(bundle.everything())
    for row in Tool.objects.order_by("-pk"):
        row.save()
    backwards = reversed(bundle.everything())
    assert bundle.export_bundle(backwards) == first
    assert first.startswith(b'{\n  "format": "django-mcp-app bundle",\n  "version": 2,')
    assert first.endswith(b"\n}\n")
    file = json.loads(first)
    assert keys(file)["tools"] == ["Hours", "hours", "vanished"]


def test_a_working_copy_that_is_published_stands_there_once() -> None:
    row = published(tool())
    assert "working" not in entry(exported(), "tools", "hours")
    row.title = "Changed"
    row.save()
    found = entry(exported(), "tools", "hours")
    assert found["working"]["title"] == "Changed"
    assert "title" not in found["published"]["content"]
    assert row.published is not None
    assert found["published"]["hash"] == row.published.hash


def test_the_hash_of_a_server_is_that_of_its_names() -> None:
    fill()
    version = entry(exported(), "servers", "shop")["published"]
    assert version["content"]["chosen"]["tools"] == ["Hours", "hours"]
    assert version["hash"] == hash_of(version["content"])
    server = Server.objects.get(slug="shop")
    assert server.published is not None
    assert version["hash"] != server.published.hash


def test_what_a_server_chose_and_is_gone_is_left_out() -> None:
    fill()
    server = Server.objects.get(slug="shop")
    server.selection = "all"
    server.save()
    Tool.objects.get(name="Hours").delete()
    file = exported()
    chosen = entry(file, "servers", "shop")["published"]["content"]["chosen"]
    assert chosen["tools"] == ["hours"]
    assert "chosen" not in entry(file, "servers", "shop")["working"]
    assert bundle.read_bundle(json.dumps(file).encode()).entries


@override_settings(USE_TZ=False)
def test_a_site_without_time_zones() -> None:
    published(tool())
    created = entry(exported(), "tools", "hours")["published"]["created"]
    assert "+" not in created


def test_more_uploads_than_one_statement_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "AT_ONCE", 2)
    for number in range(5):
        blob = Blob.objects.keep(bytes([number]))
        block = {"type": "image", "mimeType": "image/png", "upload": blob.digest}
        tool(f"tool_{number}", config=json.dumps({"content": [block]}))
    digests = [each["digest"] for each in exported()["blobs"]]
    assert digests == sorted(digests)
    assert len(digests) == 5


def test_a_file_that_would_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    tool()
    monkeypatch.setattr(writing, "MOST_BYTES", 10)
    with pytest.raises(BundleRefused, match=r"The file would have .* the limit is 10"):
        bundle.export_bundle(bundle.everything())


# -- selecting -------------------------------------------------------------------------


def named(rows: list[PublishedRow]) -> list[str]:
    return sorted(natural_key_of(row) for row in rows)


def test_what_a_server_chooses_goes_along_even_if_it_says_nothing() -> None:
    # What staff took back and published says no more than what nobody touched.
    published(overlay("silent"))
    server = Server.objects.create(slug="shop", selection="chosen")
    assert "silent" not in named(bundle.everything())
    server.tools.set(Tool.objects.all())
    assert named(bundle.everything()) == ["default", "shop", "silent"]
    assert named(bundle.servers_by_name(["shop"])) == ["shop", "silent"]


def test_a_server_takes_along_what_it_offers() -> None:
    tool("sale", tags="sale")
    published_before = published(tool("before", tags="sale"))
    published_before.tags = ""
    published_before.save()
    tool("other", tags="stock")
    overlay("silent")
    Server.objects.create(slug="shop", selection="tags", tags="sale")
    assert named(bundle.servers_by_name(["shop"])) == ["before", "sale", "shop"]
    assert named(bundle.servers_by_name(["default", "shop", "shop"])) == [
        "before",
        "default",
        "other",
        "sale",
        "shop",
    ]


def test_a_server_takes_along_what_its_version_offers() -> None:
    tool("sale", tags="sale")
    tool("stock", tags="stock")
    server = published(Server(slug="shop", selection="tags", tags="sale"))
    server.tags = "stock"
    server.save()
    assert named(bundle.servers_by_name(["shop"])) == ["sale", "shop", "stock"]


def test_servers_come_first_and_a_choice_is_of_each_kind() -> None:
    assert next(iter(LISTS.values())) is Server
    assert [Server, *CHOICES.values()] == [*LISTS.values()]
    for name, model in CHOICES.items():
        assert Server._meta.get_field(name).related_model is model


def test_the_order_of_members_is_part_of_a_hash() -> None:
    assert hash_of({"a": 1, "b": 2}) != hash_of({"b": 2, "a": 1})
