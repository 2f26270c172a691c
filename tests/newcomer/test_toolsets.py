"""docs/toolsets.md, done in a fresh site, and called by the clients of others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import fastmcp
import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.newcomer.programs import Serving
from tests.newcomer.readme import blocks
from tests.newcomer.sites import PASSWORD, Site

pytestmark = [
    pytest.mark.xdist_group("startproject"),
    pytest.mark.filterwarnings(
        # The SDK calls the members of the older era deprecated.
        "ignore::mcp.shared.exceptions.MCPDeprecationWarning"
    ),
]

ROWS: Final = """
from django.contrib.auth.models import User
from shop.models import Order
users = [User.objects.get(username="admin"), User.objects.create_user("eve")]
Order.objects.bulk_create(
    Order(
        customer=users[at % 2],
        number=f"n{at:03}",
        total=at,
        state=["open", "sent"][at % 4 // 2],
    )
    for at in range(150)
)
"""
OWN: Final = [f"n{at:03}" for at in range(0, 150, 2)]
"""The orders of the user who has the token: the others are somebody else's."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site.started(tmp_path_factory.mktemp("toolsets"))
    model, tools = blocks("A model")
    [form] = blocks("A form")
    site.write(model.file, model.text)
    site.type("python manage.py makemigrations shop")
    site.follow("Add it to your site")
    site.write(tools.file, tools.text + form.text)
    site.write("rows.py", ROWS)
    site.type("python manage.py shell -c 'import rows'")
    return site


@pytest.fixture(scope="module")
def token(site: Site) -> str:
    line = "python manage.py mcp_token new admin desk --change"
    return site.type(line).split()[-1]


@pytest.fixture(scope="module")
def served(site: Site) -> Iterator[Serving]:
    with site.serving("python manage.py runserver --noreload") as served:
        yield served


async def test_the_official_sdk(served: Serving, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    async with create_mcp_http_client(headers) as http:
        transport = streamable_http_client(f"{served.url}/mcp", http_client=http)
        async with Client(transport, mode="auto") as client:

            async def data(name: str, arguments: dict[str, Any]) -> Any:
                result = await client.call_tool(name, arguments)
                assert not result.is_error, result
                return result.structured_content

            names = {tool.name for tool in (await client.list_tools()).tools}
            assert names == {"order_list", "order_get", "order_count", "add_order"}
            await _look_around(data)
            # A form: what does not fit is told, and nothing is stored.
            fitting = {"number": "fresh", "total": 2.5}
            assert await data("add_order", fitting) == {"result": "fresh"}
            refused = await client.call_tool("add_order", fitting)
            assert refused.is_error
            assert "number: Order with this Number already exists." in str(refused)
            [row] = (await data("order_list", {"search": "fresh"}))["rows"]
            assert (row["state"], row["total"]) == ("open", "2.50")


async def test_fastmcp(served: Serving, token: str) -> None:
    async with fastmcp.Client(f"{served.url}/mcp", auth=token) as client:

        async def data(name: str, arguments: dict[str, Any]) -> Any:
            return (await client.call_tool(name, arguments)).structured_content

        assert "order_list" in {tool.name for tool in await client.list_tools()}
        await _look_around(data)


async def _look_around(data: Any) -> None:
    """List, search, page to the end, get and count."""
    page = await data("order_list", {"sort": "number", "search": "n"})
    rows, total = page["rows"], page["total"]
    while "next" in page:
        page = await data(
            "order_list", {"sort": "number", "search": "n", "cursor": page["next"]}
        )
        rows += page["rows"]
    assert [row["number"] for row in rows] == OWN
    assert total == len(OWN)
    assert (await data("order_list", {"search": "n001"}))["rows"] == []
    [row] = (await data("order_list", {"search": "N002"}))["rows"]
    assert await data("order_get", {"key": row["id"]}) == row
    counted = await data("order_count", {"search": "n", "by": "state"})
    assert counted["groups"] == [
        {"state": "open", "count": 38},
        {"state": "sent", "count": 37},
    ]


def test_the_commands_and_pages_of_staff(site: Site, served: Serving) -> None:
    listed = site.type("python manage.py mcp_list --user admin")
    assert re.search(r"order_list +reads +\d+ tokens +shop/mcp\.py:\d+", listed)
    with httpx.Client(base_url=served.url, follow_redirects=True) as staff:
        page = staff.get("/admin/login/")
        sent = {"username": "admin", "password": PASSWORD, "next": "/admin/"}
        token = staff.cookies["csrftoken"]
        staff.post("/admin/login/", data={**sent, "csrfmiddlewaretoken": token})
        listing = staff.get("/admin/mcp_app/tool/?q=order_get").text
        [row] = set(re.findall(r"/admin/mcp_app/tool/(\d+)/change/", listing))
        page = staff.get(f"/admin/mcp_app/tool/{row}/change/")
        assert "mcp.model_tools(shop.Order)" in page.text
        for name in ("try", "who"):
            assert staff.get(f"/admin/mcp_app/tool/{row}/{name}/").status_code == 200
