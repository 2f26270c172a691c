"""MCP Apps as clients get them: pages of code, and two of ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from pytest_django import DjangoDbBlocker

from mcp_app.catalog.app_lint import page_findings
from mcp_app.catalog.registry import Registry
from mcp_app.interface.errors import RegistrationError
from mcp_app.models import Server
from mcp_app.protocol.apps import MEDIA_TYPE
from mcp_app.templatetags.mcp_apps import mcp_inline
from tests.published import published
from tests.scripting import STATEFUL, STATELESS
from tests.serving import Connect

ORDERS: Final = "ui://shop/orders"
TABLE: Final = "ui://mcp_app/table"
UI: Final = {"csp": {"connectDomains": ["https://a.example"]}, "prefersBorder": True}
POLICY: Final[Any] = {"connect": ["https://a.example"]}


def shop_registry() -> Registry:
    registry = Registry()
    registry.app(
        ORDERS,
        template="drill/orders.html",
        csp=POLICY,
        border=True,
        meta={"com.example/a": 1},
    )
    registry.app("ui://shop/text", template=lambda: "<!doctype html><p>Hi")

    @registry.tool(app=ORDERS, read_only=True, meta={"com.example/b": 2})
    def find_orders() -> list[str]:
        """Find the orders of the shop."""
        return ["1001"]

    @registry.tool(app=ORDERS, app_only=True, read_only=True)
    def more_orders() -> str:
        """Find further orders of the shop."""
        return "1002"

    @registry.tool(app=TABLE, read_only=True, tags=["sales"])
    def sales() -> list[str]:
        """Tell what was sold by week."""
        return ["7"]

    return registry


@pytest.fixture(autouse=True)
def served(
    served_rows: None,
    django_db_blocker: DjangoDbBlocker,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    monkeypatch.setattr("tests.behaviours.registry", shop_registry())
    monkeypatch.setattr("tests.serving._warmth", {})
    with django_db_blocker.unblock():
        made = [
            published(Server(slug="apps", access="header")),
            published(Server(slug="found", access="header", listing="search")),
            published(
                Server(slug="bare", access="header", selection="tags", tags="none")
            ),
        ]
        yield
        for row in made:
            row.delete()


@pytest.fixture
def ask(connect: Connect) -> Any:
    async def ask(
        method: str, version: str = STATELESS, server: str = "apps", **params: Any
    ) -> Any:
        headers = {"x-user": "1", "x-tags": params.pop("tags", "")}
        client = await connect(version, path=f"/mcp/{server}", headers=headers)
        return await client.request(method, params)

    return ask


@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
async def test_tools_and_resources_say_which_page_is_shown(
    ask: Any, version: str
) -> None:
    tools = (await ask("tools/list", version)).result["tools"]
    metas = {each["name"]: each.get("_meta") for each in tools}
    shown = {"ui": {"resourceUri": ORDERS}, "ui/resourceUri": ORDERS}
    assert metas["find_orders"] == {**shown, "com.example/b": 2}
    assert metas["more_orders"]["ui"] == {"resourceUri": ORDERS, "visibility": ["app"]}
    assert metas["sales"]["ui"] == {"resourceUri": TABLE}
    listed = (await ask("resources/list", version)).result["resources"]
    pages = {each["uri"]: each for each in listed if each["uri"].startswith("ui:")}
    assert pages.keys() == {ORDERS, "ui://shop/text", TABLE}
    assert {each["mimeType"] for each in pages.values()} == {MEDIA_TYPE}
    assert pages[ORDERS]["name"] == "orders"
    assert pages[ORDERS]["_meta"] == {"com.example/a": 1, "ui": UI}


@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
async def test_the_contents_have_all_that_the_page_needs(
    ask: Any, version: str
) -> None:
    result = (await ask("resources/read", version, uri=ORDERS)).result
    (contents,) = result["contents"]
    # Some hosts read the policy here, and some in the list.
    assert contents["_meta"] == {"ui": UI}
    assert contents["mimeType"] == MEDIA_TYPE
    page = contents["text"]
    # What would end the style in the middle does not.
    assert r"""<style>li::before { content: "<\/style>"; }""" in page
    assert "ui/initialize" in page
    assert "src=" not in page
    if version == STATELESS:
        assert (result["ttlMs"], result["cacheScope"]) == (3_600_000, "private")
    other = (await ask("resources/read", version, uri="ui://shop/text")).result
    assert other["contents"][0]["text"] == "<!doctype html><p>Hi"
    assert "_meta" not in other["contents"][0]


async def test_a_server_declares_apps_if_it_has_some(ask: Any) -> None:
    name = "io.modelcontextprotocol/ui"
    for server, has_apps in (("apps", True), ("bare", False)):
        found = (await ask("server/discover", server=server)).result["capabilities"]
        assert (name in found.get("extensions", {})) is has_apps
    refusal = await ask("resources/read", server="bare", uri=TABLE)
    assert refusal.error["code"] == -32602


async def test_models_do_not_find_what_pages_call(ask: Any) -> None:
    arguments = {"query": "orders shop sold"}
    found = await ask(
        "tools/call", server="found", name="search_tools", arguments=arguments
    )
    names = [each["name"] for each in found.result["structuredContent"]["tools"]]
    assert {*names} == {"find_orders", "sales"}


async def test_our_page_is_there_for_whoever_sees_its_tool(ask: Any) -> None:
    for tags, count in (("sales", 1), ("other", 0)):
        listed = (await ask("resources/list", tags=tags)).result["resources"]
        assert [each["uri"] for each in listed] == [TABLE] * count


MISTAKES: Final[list[tuple[str, Any, str]]] = [
    ("https://a", {"template": "a.html"}, "must begin with ui://"),
    ("ui://a/{b}", {"template": "a.html"}, "have no variables"),
    ("ui://a", {}, "It needs template="),
    ("ui://a", {"template": "a", "meta": {"ui": {}}}, "leave it out"),
    ("ui://a", {"template": "a", "csp": {"connect": ["a.b; *"]}}, "is no origin"),
    ("ui://a", {"template": "a", "csp": {"other": []}}, "The option csp"),
    ("ui://a", {"template": "a", "permissions": ["all"]}, "The option permissions"),
    ("ui://a", {"template": "a", "mime_type": "a/b"}, "has no option 'mime_type'"),
]


def test_what_hosts_would_not_show_is_refused() -> None:
    for uri, options, sentence in MISTAKES:
        with pytest.raises(RegistrationError, match=sentence.replace("(", r"\(")):
            Registry().app(uri, **options)
    with pytest.raises(RegistrationError, match="must begin with ui://"):
        Registry().tool("a", app="shop/orders.html")(lambda: "")
    registry = shop_registry()
    with pytest.raises(RegistrationError, match="already declared"):
        registry.app(ORDERS, template=lambda: "")


def test_a_script_ends_at_its_end(settings: Any, tmp_path: Path) -> None:
    text = 'const a = "</SCRIPT><!--", b = /<!--|<\\/script>/u;'
    (tmp_path / "end.js").write_text(text)
    settings.STATICFILES_DIRS = [tmp_path]
    page = mcp_inline("end.js")
    assert page == (
        r'<script>const a = "\x3C/SCRIPT>\x3C!--", b = /\x3C!--|<\/script>/u;</script>'
    )


async def test_the_limit_of_pages_is_for_those_of_the_site(
    ask: Any, settings: Any
) -> None:
    settings.MCP = {**settings.MCP, "LIMITS": {"text": 1_000}}
    assert "result" in (await ask("resources/read", uri=TABLE)).answer
    assert "result" not in (await ask("resources/read", uri=ORDERS)).answer


def test_a_static_file_that_is_not_there_is_named(settings: Any) -> None:
    settings.STATIC_ROOT = None
    registry = Registry()
    registry.app("ui://shop/lost", template="drill/lost.html")
    (finding,) = page_findings(registry.resources["ui://shop/lost"])
    assert "There is no static file 'drill/lost.css'" in finding.message


def test_a_page_that_is_too_large_says_so(settings: Any) -> None:
    settings.MCP = {**settings.MCP, "LIMITS": {"text": 1_000}}
    declared = shop_registry().resources[ORDERS]
    (finding,) = page_findings(declared)
    assert "bytes; LIMITS['text'] allows 1000" in finding.message
