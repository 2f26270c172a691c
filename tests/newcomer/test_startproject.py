"""README.md, done line by line in a site of somebody else."""

from __future__ import annotations

import re
import time
from pathlib import Path

import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.newcomer.programs import LOOK_S
from tests.newcomer.readme import blocks
from tests.newcomer.sites import FRONT, Site

# The first of them makes the site that the others copy.
pytestmark = [
    pytest.mark.xdist_group("startproject"),
    pytest.mark.filterwarnings(
        # The SDK calls the members of the older era deprecated.
        "ignore::mcp.shared.exceptions.MCPDeprecationWarning"
    ),
]

ADD = "Add it to your site"
NEW_TOKEN = "python manage.py mcp_token new admin laptop"
STREAM = "Stream over ASGI"
TOKENS = "With access tokens"
KEY = "With your own authenticator"

PLAIN_DAPHNE = "daphne mysite.asgi:application"
# Of the stateful era, of the stateless one.
MODES = ("legacy", "auto")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site.started(tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="module")
def added(bare: Site, tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = bare.copied(tmp_path_factory.mktemp("added"))
    assert site.follow(ADD) == ["python manage.py runserver"]
    return site


@pytest.fixture
def site(added: Site, tmp_path: Path) -> Site:
    return added.copied(tmp_path)


def answers(url: str) -> dict[str, tuple[int, str, str]]:
    return {
        path: (
            answer.status_code,
            answer.headers["Content-Type"],
            answer.headers.get("Location", ""),
        )
        for path in ("/", "/admin/", "/admin/login/", "/nowhere", "/mcpx", "/mc")
        for answer in [httpx.get(f"{url}{path}")]
    }


def style_sheets(url: str) -> dict[str, httpx.Response]:
    page = httpx.get(f"{url}/admin/login/").text
    paths = re.findall(r'<link rel="stylesheet" href="([^"]+)"', page)
    assert paths
    paths.append("/static/mcp_app/admin.css")
    return {path: httpx.get(f"{url}{path}") for path in paths}


def initialize(url: str, **headers: str) -> httpx.Response:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "newcomer", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    headers["Accept"] = "application/json, text/event-stream"
    return httpx.post(f"{url}/mcp", json=message, headers=headers)


async def called(url: str, mode: str, **headers: str) -> object:
    async with create_mcp_http_client(headers) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["add"]
            result = await client.call_tool("add", {"a": 2, "b": 3})
            assert not result.is_error
            return result.structured_content


async def adds(url: str, **headers: str) -> None:
    for mode in MODES:
        assert await called(url, mode, **headers) == {"result": 5}


async def answered(url: str, **headers: str) -> None:
    """Call the tool in both eras."""
    for mode in MODES:
        assert await called(url, mode, **headers) == {"result": 5}


def test_there_are_four_steps_and_two_lines() -> None:
    """Beside the tool itself, the tables, a user and its token."""
    install, settings, urls, tool, _, then = blocks(ADD)
    assert [install.language, then.language] == ["sh", "sh"]
    for block in (settings, urls):
        changed = [line for line in block.text.splitlines() if "mcp_app" in line]
        assert len(changed) == 1, block.text
    assert tool.file == "shop/mcp.py"
    typed = [line.split()[2] for line in then.text.splitlines()]
    assert typed == ["migrate", "createsuperuser", "mcp_token", "runserver"]


def test_the_test_of_the_first_tool_passes(site: Site) -> None:
    site.type("python manage.py test shop")


async def test_the_first_answer(site: Site) -> None:
    """Under plain runserver, with the token that the steps made."""
    token = site.printed[NEW_TOKEN].split()[-1]
    with site.serving("python manage.py runserver") as served:
        await adds(served.url, Authorization=f"Bearer {token}")


def test_the_first_call(site: Site) -> None:
    """With the script of README, which needs no other program."""
    install, script = blocks("Make a first call")
    site.install(install.text.strip())
    token = site.printed[NEW_TOKEN].split()[-1]
    with site.serving("python manage.py runserver") as served:
        assert "http://127.0.0.1:8000/mcp" in script.text
        text = script.text.replace("http://127.0.0.1:8000", served.url)
        site.write(script.file, text)
        said = site.type(f"python {script.file} {token}")
    assert said.splitlines() == ["['add']", "{'result': 5}"]


@pytest.mark.parametrize("way", [ADD, STREAM, "Serve it without runserver"])
def test_the_site_is_unchanged_styled_and_closed(
    bare: Site, site: Site, way: str
) -> None:
    with bare.serving(PLAIN_DAPHNE) as served:
        before = answers(served.url)
    assert before["/"][0] == 200
    line = "python manage.py runserver"
    if way != ADD:
        line = next(iter(site.follow(way)), line)
    with site.serving(line) as served:
        assert httpx.get(served.url).text == FRONT
        assert answers(served.url) == before
        for path, sheet in style_sheets(served.url).items():
            assert sheet.status_code == 200, path
            assert sheet.headers["Content-Type"].startswith("text/css"), path
        refused = initialize(served.url)
    assert refused.status_code == 401
    assert "Bearer" in refused.headers["WWW-Authenticate"]


async def test_access_tokens(site: Site) -> None:
    site.follow(TOKENS)
    token = site.type(blocks(TOKENS)[-1].text.splitlines()[-1]).split()[-1]
    with site.serving(PLAIN_DAPHNE) as served:
        for wrong in ({}, {"Authorization": f"Bearer {token}x"}):
            assert initialize(served.url, **wrong).status_code == 401
        await adds(served.url, Authorization=f"Bearer {token}")
        site.type(f"python manage.py mcp_token revoke {token[:10]}")
        gone = initialize(served.url, Authorization=f"Bearer {token}")
        assert gone.status_code == 401
        assert "revoked" in gone.headers["WWW-Authenticate"]


async def test_users_with_a_key(site: Site) -> None:
    site.follow(KEY)
    key = site.type(blocks(KEY)[-1].text.splitlines()[-1]).strip()
    with site.serving(PLAIN_DAPHNE) as served:
        for wrong in ({}, {"Authorization": f"Bearer {key}x"}):
            assert initialize(served.url, **wrong).status_code == 401
        await adds(served.url, Authorization=f"Bearer {key}")


async def test_everyone(site: Site) -> None:
    with site.serving(PLAIN_DAPHNE) as served:
        assert initialize(served.url).status_code == 401
        site.follow("For everyone")
        # Far longer than a process takes to see what another one wrote.
        end = time.monotonic() + 60
        while (answer := initialize(served.url)).status_code != 200:
            assert time.monotonic() < end, answer.text
            time.sleep(LOOK_S)
        await adds(served.url)
