"""What cannot be looked at, and how findings are printed."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from tests.drill.ports import HOST, free_port
from tests.published import published
from tests.workbench.checking.test_client import OK, answering, listening

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _server() -> None:
    from mcp_app.models import Server  # noqa: PLC0415

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
    assert "'none'" in refused("http://localhost/", "--server", "none")


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
    assert found["ours"]["grade"] == "problem"
    assert found["ours"]["what"] == "Something else answers (status 200, text/html)."
