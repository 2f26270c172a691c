from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from mcp_app.invalidation.workers import here
from mcp_app.management.commands import mcp_import
from mcp_app.models import EventType, Tool
from mcp_app.publishing import bundle
from tests.published import published
from tests.publishing.bundle.content import as_bytes, clear, exported, fill, tool

pytestmark = pytest.mark.django_db

Save = Callable[[Any], str]


@pytest.fixture
def saved(tmp_path: Path) -> Save:
    def save(file: Any) -> str:
        path = tmp_path / "staging.json"
        path.write_bytes(file if isinstance(file, bytes) else as_bytes(file))
        return str(path)

    return save


def run(*arguments: str) -> str:
    said = StringIO()
    call_command("mcp_import", *arguments, stdout=said)
    return said.getvalue()


def test_nothing_is_written_unless_it_is_asked_for(saved: Save) -> None:
    fill()
    path = saved(bundle.export_bundle(bundle.everything()))
    clear()
    for arguments in ([path], [path, "--check"], [path, "--check", "--publish"]):
        said = run(*arguments)
        assert "9 new · 0 changed · 0 the same · 0 not in the file (unchanged)" in said
        assert "New: tool “hours”" in said
        assert "  title: (not there) -> “Öffnungszeiten”" in said
        assert "Broken here: the code does not declare it." in said
        assert "It is not published here, and stays unpublished until you" in said
        assert not Tool.objects.exists()


def test_it_is_shown_and_applied(saved: Save) -> None:
    fill()
    path = saved(bundle.export_bundle(bundle.everything()))
    clear()
    assert "9 imported." in run(path, "--apply")
    assert Tool.objects.get(name="hours").published is None
    said = run(path)
    assert "0 new · 0 changed · 9 the same" in said
    assert "tool" not in said
    said = run(path, "--apply", "--publish")
    assert "Changed: tool “hours”" in said
    assert "5 imported." in said
    version = Tool.objects.get(name="hours").published
    assert version is not None
    assert "Imported from staging.json" in version.note
    assert not LogEntry.objects.exists()


def test_fifty_files_are_the_same_at_another_site(tmp_path: Path) -> None:
    fill()
    EventType.objects.all().delete()
    for number in range(42):
        tool(f"tool_{number}")
    files: list[dict[str, bytes]] = []
    for name in ("there", "back"):
        folder = tmp_path / name
        call_command("mcp_export", "--folder", str(folder))
        paths = folder.rglob("*.json")
        files.append({p.relative_to(folder).as_posix(): p.read_bytes() for p in paths})
        clear()
        assert "50 imported." in run(str(folder), "--apply", "--publish-working")
        assert "0 imported." in run(str(folder), "--apply", "--publish-working")
    assert files[0] == files[1]
    assert {"servers/shop.json", "tools/hours.json"} < files[0].keys()
    Tool.objects.update(title="Ours")
    (folder / "tools" / "tool_7.json").write_bytes(b"{")
    with pytest.raises(CommandError, match=r"tools/tool_7\.json: The file is not"):
        run(str(folder), "--apply", "--publish-working")
    assert set(Tool.objects.values_list("title", flat=True)) == {"Ours"}


def test_it_comes_through_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    tool(title="Piped")
    file = bundle.export_bundle(bundle.everything())
    clear()
    stdin = io.TextIOWrapper(io.BytesIO(file))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert "2 imported." in run("-", "--apply", "--publish")
    assert Tool.objects.get().title == "Piped"


def test_the_author_is_noted(saved: Save) -> None:
    user = User.objects.create_user("maria")
    published(tool())
    path = saved(exported())
    clear()
    run(path, "--apply", "--publish", "--user", "maria")
    row = Tool.objects.get()
    assert row.updated_by == user
    assert row.published is not None
    assert row.published.author == user
    entry = LogEntry.objects.get(content_type__model="tool")
    assert (entry.user, entry.action_flag) == (user, ADDITION)
    assert entry.change_message.startswith("Imported from staging.json. Published")
    with pytest.raises(CommandError, match="There is no user “nobody”"):
        run(path, "--user", "nobody")


def test_a_site_without_the_admin_has_no_log(
    saved: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    User.objects.create_user("maria")
    tool()
    path = saved(exported())
    clear()
    monkeypatch.setattr(apps, "is_installed", lambda name: False)
    run(path, "--apply", "--user", "maria")
    assert not LogEntry.objects.exists()


def test_what_cannot_be_imported_ends_with_an_error(saved: Save) -> None:
    published(tool(kind="function", config='{"function": "shop.gone"}'))
    path = saved(exported())
    clear()
    assert "Must be fixed before publishing: " in run(path)
    for mode in ("--check", "--apply"):
        with pytest.raises(CommandError, match=r"tool “hours”: .*shop\.gone"):
            run(path, mode, "--publish")
    assert not Tool.objects.exists()


@pytest.mark.parametrize("mode", ["--check", "--apply"])
def test_a_file_that_is_none(saved: Save, mode: str) -> None:
    with pytest.raises(CommandError, match="Line 1: this is not JSON"):
        run(saved(b"no"), mode)
    with pytest.raises(CommandError, match="No such file"):
        run("/nowhere/at/all.json", mode)
    with pytest.raises(CommandError, match=r"there is no \*\.json in this folder"):
        run(str(Path(__file__).parent), mode)


def test_what_was_looked_at_can_be_named(saved: Save) -> None:
    tool()
    path = saved(exported())
    Tool.objects.update(title="Old", updated_by=User.objects.create_user("maria"))
    said = run(path)
    conflict = "The file would overwrite what is saved and not published: maria, "
    assert f"Conflict: {conflict}" in said
    with pytest.raises(CommandError, match=f"tool “hours”: {conflict}"):
        run(path, "--apply")
    assert Tool.objects.get().title == "Old"
    looked_at = said.rpartition("Looked at: ")[2].strip()
    Tool.objects.update(title="Newer")
    with pytest.raises(CommandError, match="something at this site, has changed"):
        run(path, "--apply", "--looked-at", looked_at)
    assert Tool.objects.get().title == "Newer"
    Tool.objects.update(title="Old")
    assert "1 imported." in run(path, "--apply", "--looked-at", looked_at)


def test_differences_are_told_in_words(saved: Save) -> None:
    schema = '{"type": "object", "properties": {"day": {"type": "string"}}}'
    text = '{"content": [{"type": "text", "text": "Open on {{day}}."}]}'
    row = published(tool(input_schema=schema, config=text))
    row.title = "Now"
    row.save()
    file = exported()
    row.input_schema, row.title = "", "x" * 250
    row.config = '{"content": [{"type": "text", "text": "Open."}]}'
    row.description = "Closed \u202e."
    row.save()
    Tool.objects.publish([row])
    said = run(saved(file), "--publish")
    assert f"  title: “{'x' * 200}…” -> “Now”" in said
    assert "  input_schema: (not there) -> “day: text, not required”" in said
    assert "⟦U+202E⟧" in said
    assert "Published: 4 differences from what clients see." in said


def test_old_calls_that_break_are_told(saved: Save) -> None:
    published(tool())
    file = exported()
    row = Tool.objects.get()
    schema = '{"type": "object", "properties": {"day": {"type": "string"}}}'
    row.input_schema = schema
    row.save()
    Tool.objects.publish([row])
    said = run(saved(file), "--publish")
    assert "  Calls that work now will fail: those with “day”." in said


def test_it_answers_when_every_process_knows(
    saved: Save,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    tool()
    path = saved(exported())
    clear()
    held: list[bool] = []
    monkeypatch.setattr(here, "committed", lambda: held.append(Tool.objects.exists()))
    with django_capture_on_commit_callbacks(execute=True):
        run(path)
    assert held == []
    with django_capture_on_commit_callbacks(execute=True):
        run(path, "--apply")
    assert held == [True]


def test_no_more_is_read_than_tells_that_it_is_too_large(
    saved: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "MOST_BYTES", 10)
    assert (
        mcp_import._read_file(saved(json.dumps("x" * 100).encode())) == b'"xxxxxxxxxx'
    )
