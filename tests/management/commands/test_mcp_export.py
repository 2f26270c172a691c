from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from mcp_app.models import Blob, Tool
from mcp_app.publishing import bundle
from tests.publishing.bundle.content import fill

pytestmark = pytest.mark.django_db


def export(*arguments: str) -> str:
    said = StringIO()
    call_command("mcp_export", *arguments, stdout=said)
    return said.getvalue()


def test_everything_goes_to_standard_output() -> None:
    fill()
    assert export().encode() == bundle.export_bundle(bundle.everything())


def test_servers_go_to_a_file(tmp_path: Path) -> None:
    fill()
    output = tmp_path / "bundle.json"
    assert export("--server", "shop", "--output", str(output)) == ""
    file = json.loads(output.read_bytes())
    assert [each["slug"] for each in file["servers"]] == ["shop"]
    assert not file["prompts"]


def test_working_copies_alone_have_no_numbers_authors_and_times() -> None:
    fill()
    said = export("--working")
    words = '"number": 1', '"author"', '"created"', '"note"', '"published"'
    assert not any(word in said for word in words)
    Tool.objects.publish(Tool.objects.filter(source="here"))
    assert export("--working") == said


def test_what_cannot_be_exported_writes_nothing(tmp_path: Path) -> None:
    fill()
    Blob.objects.all().delete()
    output = tmp_path / "bundle.json"
    with pytest.raises(CommandError, match="which no longer exists"):
        export("--output", str(output))
    assert not output.exists()
    with pytest.raises(CommandError, match="There is no server “x”"):
        export("--server", "x")
