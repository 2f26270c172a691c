"""What cannot be looked at, and how findings are printed."""

from __future__ import annotations

import json
import socket
import ssl
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import OperationalError
from pytest_django import Settings

from mcp_app.management.commands import mcp_check
from mcp_app.models import AccessToken, Server
from mcp_app.workbench.checking.findings import Finding, Grade
from mcp_app.workbench.checking.site_findings import Conversations
from tests.drill.ports import HOST, free_port
from tests.published import published
from tests.workbench.checking.test_client import OK, Serve, answering, listening
from tests.workbench.checking.test_observing import REPORT

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _server() -> None:
    Server.objects.filter(slug="default").delete()
    published(Server(slug="default", access="public"))


def refused(*arguments: str) -> str:
    with pytest.raises(CommandError) as error:
        call_command("mcp_check", *arguments)
    assert error.value.returncode == 2
    return str(error.value)


def test_without_an_address(settings: Settings) -> None:
    settings.MCP = {}
    assert "MCP['PUBLIC_URL']" in refused()


def test_what_is_no_address() -> None:
    assert "'ftp://x/' cannot be looked at: it must begin with" in refused("ftp://x/")


def test_a_server_that_there_is_not() -> None:
    said = refused("http://localhost/", "--server", "none")
    assert "'none'" in said
    assert "'default'" in said
    assert "is not a text" in refused("http://localhost/", "--server", "\udcff")


def test_the_server_at_the_end_of_the_address(settings: Settings) -> None:
    for public in ({}, {"PUBLIC_URL": "https://mcp.example.com/mcp"}):
        settings.MCP = public
        assert mcp_check._slug_from_url(None) == "default"
        assert mcp_check._slug_from_url("http://127.0.0.1:8000/mcp/") == "default"
        assert mcp_check._slug_from_url("http://127.0.0.1:8000/mcp/team") == "team"
        assert mcp_check._slug_from_url("https://other.example/a/b") == "default"
        assert mcp_check._slug_from_url("https://[") == "default"


def test_a_database_that_answers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(slug: str, returncode: int) -> None:
        raise OperationalError("no such table: mcp_app_server")

    monkeypatch.setattr(mcp_check, "find_server", fails)
    assert "no such table" in refused("http://localhost/")


def test_a_server_that_nobody_looked_at() -> None:
    """Others look at it: that is neither good nor bad."""
    busy = b'{"mcp_probe":1,"busy":true}'
    head = b"HTTP/1.1 429 Busy\r\nContent-Length: %d\r\n\r\n" % len(busy)
    with listening(answering(head + busy)) as url, pytest.raises(SystemExit) as end:
        call_command("mcp_check", url, stdout=StringIO())
    assert end.value.code == 2


def test_a_file_without_certificates(tmp_path: Path) -> None:
    file = tmp_path / "none.pem"
    assert str(file) in refused("http://localhost/", "--ca", str(file))
    file.write_text("nothing")
    assert str(file) in refused("http://localhost/", "--ca", str(file))


def test_nobody_answers() -> None:
    told = StringIO()
    url = f"http://{HOST}:{free_port()}/mcp"
    with pytest.raises(SystemExit) as end:
        call_command("mcp_check", url, stdout=told)
    assert end.value.code == 2
    assert told.getvalue().startswith(f"Problem: There is no answer at {url}.\n")
    assert "privacy policy" not in told.getvalue()
    with pytest.raises(SystemExit):
        call_command("mcp_check", url, "--directory", stdout=told)
    assert f"Problem: Nobody outside reaches {url} by https.\n" in told.getvalue()
    assert "Cannot tell from here: A privacy policy" in told.getvalue()


def test_the_public_address_is_looked_at(settings: Settings) -> None:
    """A page there is no server: it has another status."""
    told = StringIO()
    page = b"Content-Type: text/html\r\nContent-Length: 2\r\n\r\nhi"
    with listening(answering(OK + page)) as url:
        settings.MCP = {"PUBLIC_URL": url}
        with pytest.raises(SystemExit) as end:
            call_command("mcp_check", "--json", stdout=told)
    assert end.value.code == 1
    found = {each["rule"]: each for each in json.loads(told.getvalue())}
    assert [*found["ours"]] == ["rule", "grade", "what", "why", "line"]
    assert found["ours"]["grade"] == "problem"
    assert found["ours"]["what"] == "Something else answers (status 200, text/html)."


def forged(got: list[bytes]) -> Serve:
    """Answer everything as a server would that knows the probe, and keep what came."""
    report = json.dumps({**REPORT, "interface": "ASGI"}).encode()

    def serve(connection: socket.socket) -> None:
        while chunk := connection.recv(65_536):
            got.append(chunk)
            if chunk.endswith(b"}") or b"GET" in chunk or b"xxx" in chunk:
                break
        length = b"Content-Length: %d\r\n\r\n" % len(report)
        connection.sendall(OK + length + report)

    return serve


@pytest.mark.parametrize("by", ["user", "environment"])
def test_a_wrong_address_sees_no_token(
    by: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one behind a redirect, nor one that answers as if it were the site."""
    settings.ALLOWED_HOSTS = ["mcp.example.com"]
    settings.MCP = {"LIMITS": {"body": 1_000}}
    Server.objects.filter(slug="default").update(access="token")
    user = User.objects.create_user("maria")
    arguments = ["--user", "maria"]
    row, token = AccessToken.objects.make(user=user, name="own", may="read")
    if by == "environment":
        monkeypatch.setenv("MCP_TOKEN", token)
        arguments = []
    got: list[bytes] = []
    told = StringIO()
    with listening(forged(got)) as there:
        moved = b"HTTP/1.1 307 Moved\r\nLocation: " + there.encode() + b"\r\n\r\n"
        with listening(answering(moved)) as url, pytest.raises(SystemExit):
            call_command("mcp_check", url, *arguments, stdout=told)
        assert not got
        with suppress(SystemExit):
            call_command("mcp_check", there, *arguments, stdout=told)
        assert got
    sent = b"".join(got)
    assert b"Bearer mcp_" not in sent
    assert token.encode() not in sent
    assert [*AccessToken.objects.all()] == [row]
    assert str(token) not in told.getvalue()


def test_a_host_that_the_site_does_not_name(settings: Settings) -> None:
    """Also if all else is as it should be there."""
    settings.ALLOWED_HOSTS = ["mcp.example.com"]
    user = User.objects.create_user("maria")
    server = Server(slug="team", access="token")
    got: list[bytes] = []
    with listening(forged(got)) as url:
        speaker = Conversations(url, ssl.create_default_context())
        # That no document of another site can be had hides nothing of this one.
        away = Finding("documents", Grade.PROBLEM, "It cannot be fetched.", "")
        (found,) = mcp_check._try_clients([away], speaker, server, user, "")
    assert found.grade == "unknown"
    assert found.why.endswith("so no token of a user is sent to it.")
    assert not got
    assert not AccessToken.objects.exists()


def test_a_user_that_there_is_not() -> None:
    assert "“nobody”" in refused("http://localhost/", "--user", "nobody")


@pytest.mark.parametrize("token", ["mcp_one mcp_two", "mcp_one\r\nX: y", "“mcp_one”"])
def test_what_is_no_token_is_not_repeated(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_TOKEN", token)
    said = refused("http://localhost/")
    assert "MCP_TOKEN" in said
    assert "mcp_one" not in said


def test_the_end_of_a_line_behind_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_TOKEN", "mcp_one\r\n")
    assert mcp_check._environment_token() == "mcp_one"
