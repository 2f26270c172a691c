"""What `mcp_config` prints, and what it writes into a project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from pytest_django import Settings

from mcp_app.account.client_configs import CLIENTS
from mcp_app.account.client_formats import JsonClient
from mcp_app.models import Server

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def project(tmp_path: Path, settings: Settings) -> Path:
    """Return the folder of the project, which has a server that is not public."""
    settings.BASE_DIR = folder = tmp_path / "project"
    settings.ROOT_URLCONF = "tests.drill.urls"
    folder.mkdir()
    Server.objects.update_or_create(slug="default", defaults={"access": ""})
    Server.objects.create(slug="open", access="public")
    get_user_model().objects.create_user("eve")
    return folder


@pytest.fixture(autouse=True)
def _started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/site/manage.py", "mcp_config"])


def printed(*arguments: str) -> tuple[list[Any], str]:
    text, said = text_of(*arguments)
    decoder, found = json.JSONDecoder(), []
    while text := text.strip():
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:]
    return found, said


def text_of(*arguments: str) -> tuple[str, str]:
    out, said = StringIO(), StringIO()
    call_command("mcp_config", *arguments, stdout=out, stderr=said)
    return out.getvalue(), said.getvalue()


JSON = [key for key, each in CLIENTS.items() if isinstance(each, JsonClient)]


@pytest.mark.parametrize("client", JSON)
def test_it_prints_both_transports(client: str) -> None:
    documents, said = printed(client)
    assert len(documents) == 2
    assert "/site/manage.py" in str(documents[0])
    assert "http://127.0.0.1:8000/mcp" in str(documents[1])
    header = "Bearer ${input:tests-token}" if client == "vscode" else "YOUR-TOKEN"
    assert header in str(documents[1])
    assert "`manage.py mcp_token new USER NAME` makes one" in said
    titles = 3 if client == "vscode" else 2
    assert said.count(CLIENTS[client].title) == titles


@pytest.mark.parametrize("client", ["python", "typescript", "curl"])
def test_programs_use_http_alone(client: str) -> None:
    text, said = text_of(client)
    assert "Bearer YOUR-TOKEN" in text
    assert "/site/manage.py" not in text
    assert "On stdio" not in said
    title = CLIENTS[client].title
    with pytest.raises(CommandError, match=f"{title} starts no servers"):
        text_of(client, "--transport", "stdio")
    with pytest.raises(CommandError, match=f"{title} has no file in a project"):
        text_of(client, "--write")


def test_codex_has_a_file_of_its_own_kind() -> None:
    text, said = text_of("codex")
    assert text.count("[mcp_servers.tests]") == 2
    assert said.count("~/.codex/config.toml") == 2


@pytest.mark.parametrize("client", ["claude", "chatgpt"])
def test_who_signs_in_gets_the_address(client: str, settings: Settings) -> None:
    text, said = text_of(client)
    assert text == "http://127.0.0.1:8000/mcp\n"
    assert "this server has no sign-in" in said
    settings.MCP = {
        "PUBLIC_URL": "https://example.org",
        "AUTHENTICATION": {"oauth": "mcp_app.authentication.oauth"},
    }
    Server.objects.filter(slug="default").update(access="oauth")
    text, said = text_of(client)
    assert text == "https://example.org/mcp\n"
    assert "give it this address, and sign in" in said
    assert text_of(client, "--server", "open")[1].count("\n") == 1


def test_the_question_of_vs_code_is_written_along(project: Path) -> None:
    text_of("vscode", "--write", "--transport=http")
    found = json.loads((project / ".vscode" / "mcp.json").read_text())
    assert [each["id"] for each in found["inputs"]] == ["tests-token"]
    assert found["servers"]["tests"]["type"] == "http"


def test_the_server_and_the_user_are_named() -> None:
    options = ("--server", "open", "--user", "eve", "--transport", "stdio")
    [document], _ = printed("cursor", *options)
    [entry] = document["mcpServers"].values()
    assert entry["command"] == sys.executable
    assert entry["args"][1:] == ["mcp_stdio", "--server", "open", "--user", "eve"]


@pytest.mark.parametrize(
    ("public", "address"),
    [
        ("https://example.org", "https://example.org/mcp/open"),
        ("https://example.org/site/mcp/", "https://example.org/site/mcp/open"),
    ],
)
def test_the_public_address(settings: Settings, public: str, address: str) -> None:
    settings.MCP = {"PUBLIC_URL": public}
    options = ("--server", "open", "--transport", "http", "--name", "mine")
    [document], _ = printed("cursor", *options)
    assert document == {"mcpServers": {"mine": {"url": address}}}


def test_without_a_manage_py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/venv/bin/django-admin", "mcp_config"])
    [document], _ = printed("cursor", "--transport", "stdio")
    [entry] = document["mcpServers"].values()
    assert entry["args"][:3] == ["-m", "django", "mcp_stdio"]
    assert "--settings=tests.settings" in entry["args"]
    started = [entry["command"], *entry["args"], "--help"]
    assert subprocess.run(started, capture_output=True, check=False).returncode == 0


def test_settings_that_are_named_are_those_of_the_server() -> None:
    options = ("--transport", "stdio", "--settings", "tests.settings")
    [document], _ = printed("cursor", *options)
    [entry] = document["mcpServers"].values()
    assert entry["args"][1:] == ["mcp_stdio", "--settings=tests.settings"]


def test_it_merges_into_a_file_of_the_project(project: Path) -> None:
    path = project / ".mcp.json"
    path.write_text('{"mcpServers": {"other": {"command": "x"}}, "more": 1}')
    path.chmod(0o600)
    text_of("claude-code", "--write")
    found = json.loads(path.read_text())
    assert list(found) == ["mcpServers", "more"]
    assert list(found["mcpServers"]) == ["other", "tests"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(project.iterdir()) == [path]


@pytest.mark.parametrize("client", ["claude-desktop", "windsurf"])
def test_files_of_the_home_folder_are_left_alone(client: str) -> None:
    with pytest.raises(CommandError, match="has no file in a project"):
        call_command("mcp_config", client, "--write")


def test_a_project_that_is_the_home_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project))
    with pytest.raises(CommandError, match="your home folder"):
        call_command("mcp_config", "cursor", "--write")
    assert list(project.iterdir()) == []


def test_a_link_out_of_the_project(project: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (project / ".cursor").symlink_to(tmp_path / "home")
    with pytest.raises(CommandError, match="is outside the project"):
        call_command("mcp_config", "cursor", "--write")
    assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [b"// mine\n{}", b"\xef\xbb\xbf{}", b"\xff", b"[" * 100_000, b'{"a": 1, "a": 2}'],
)
def test_a_file_that_cannot_be_merged_stays_alone(
    project: Path, content: bytes
) -> None:
    path = project / ".mcp.json"
    path.write_bytes(content)
    with pytest.raises(CommandError, match="was not changed"):
        text_of("claude-code", "--write")
    assert path.read_bytes() == content
    assert list(project.iterdir()) == [path]


def test_a_name_that_cannot_be_written(project: Path) -> None:
    """As of arguments that are no UTF-8."""
    with pytest.raises(CommandError, match="was not changed"):
        call_command("mcp_config", "claude-code", "--write", name="\udcff")
    assert list(project.iterdir()) == []


@pytest.mark.parametrize("is_folder", [False, True])
def test_what_cannot_be_replaced_leaves_nothing_beside(
    project: Path, is_folder: bool
) -> None:
    path = project / ".mcp.json"
    if is_folder:
        (path / "in the way").mkdir(parents=True)
    else:
        path.symlink_to(path)
    with pytest.raises(CommandError, match="was not changed"):
        text_of("claude-code", "--write")
    assert list(project.iterdir()) == [path]


def test_a_link_within_the_project_stays_one(project: Path) -> None:
    path, linked = project / ".mcp.json", project / "clients.json"
    linked.write_text("{}")
    path.symlink_to(linked)
    text_of("claude-code", "--write")
    assert path.is_symlink()
    assert "tests" in json.loads(linked.read_text())["mcpServers"]


def test_a_new_file_has_the_rights_that_the_mask_leaves(project: Path) -> None:
    before = os.umask(0o077)
    try:
        text_of("claude-code", "--write")
    finally:
        os.umask(before)
    assert (project / ".mcp.json").stat().st_mode & 0o777 == 0o600


def test_ends_of_lines_stay(project: Path) -> None:
    path = project / ".mcp.json"
    path.write_bytes(b'{\r\n    "a": 1\r\n}\r\n')
    text_of("claude-code", "--write")
    found = path.read_bytes()
    assert found.startswith(b'{\r\n    "a": 1,\r\n    "mcpServers": {\r\n        "')
    assert found.count(b"\n") == found.count(b"\r\n")


@pytest.mark.parametrize(
    ("options", "warned"),
    [
        ((), True),
        (("--transport", "stdio"), True),
        (("--transport", "http"), False),
        (("--user", "eve"), False),
        (("--server", "open"), False),
    ],
)
def test_who_would_be_refused_on_stdio_is_told(
    options: tuple[str, ...], warned: bool
) -> None:
    _, said = printed("cursor", *options)
    assert ("The server 'default' is not public" in said) is warned


@pytest.mark.parametrize("active", [True, False])
def test_a_user_who_cannot_be_served(active: bool) -> None:
    name = "nobody" if active else "eve"
    get_user_model().objects.update(is_active=active)
    with pytest.raises(
        CommandError, match=f"no active user whose username is “{name}”"
    ):
        call_command("mcp_config", "cursor", "--user", name)


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(CommandError, match="no MCP server 'nowhere'"):
        call_command("mcp_config", "cursor", "--server", "nowhere")


def test_of_a_token_it_speaks_where_one_is_needed() -> None:
    assert "access token" in printed("cursor", "--transport", "http")[1]
    assert "access token" not in printed("cursor", "--transport", "stdio")[1]
    assert "access token" not in printed("cursor", "--server", "open")[1]
