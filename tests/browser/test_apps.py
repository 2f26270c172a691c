"""Apps in the official host: `AppBridge` of ext-apps, in Chromium."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Frame, Page, expect

from mcp_app.catalog.apps import CHART, TABLE, render_page
from tests.browser.conftest import CLOSED, open_page, violations
from tests.browser.listening import Listening
from tests.clients.node import MODULES, node
from tests.newcomer.programs import Serving

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]

HOST: Final = Path(__file__).with_name("app_host.mjs")
OUTSIDE: Final = """<!doctype html><title>Chat</title>
<iframe title="Answer" sandbox="allow-scripts" style="width:100%; border:0"></iframe>"""
POLICY: Final = """<meta http-equiv="Content-Security-Policy" content="
default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline';
connect-src 'none'; img-src 'self' data:; media-src 'self' data:">"""
"""What hosts use for an app that names no other site (ext-apps, "Host Behavior")."""
MARKUP: Final = "<img src=x onerror='document.title=1'><script>alert(1)</script>"
ROW: Final = """{"id": 1234, "total": "1234.50", "count": 1234, "month": "2026-02-01",
"due": "2026-02-01", "sent": "2026-02-30T99:00", "paid": true, "note": null,
"lines": [{"sku": "a", "n": 2}]}"""
TEXTS: Final = (
    "1234|1,234.50|1234|Feb 2026|2026-02-01|2026-02-30T99:00|yes|\N{EN DASH}"
    "|sku: a; n: 2"
)


@dataclass
class Chat:
    """A host with a page in it, and what that has called."""

    page: Page
    client: Listening
    calls: list[tuple[str, Any]] = field(default_factory=list)

    def call(self, name: str, arguments: Any) -> Any:
        """Return what a tool of the demo answers, as it came."""
        self.calls.append((name, arguments))
        result = self.client.ask("call_tool", name, arguments)
        return result.model_dump(mode="json", by_alias=True, exclude_none=True)

    def show(self, page: str, result: Any, tool: str = "", **values: Any) -> Frame:
        """Show the answer of a tool in a page, which is a template or ours."""
        if page.startswith("ui:"):
            html = self.client.ask("read_resource", page).contents[0].text
        else:
            html = render_page(page)
        about = {"tool": {"name": tool, "inputSchema": {"type": "object"}}}
        host = {
            "theme": "light",
            "locale": "en-GB",
            "toolInfo": about if tool else None,
        }
        host = {name: each for name, each in host.items() if each}
        html = html.replace("<!doctype html>", f"<!doctype html>{POLICY}")
        shown = {"html": html, "hostContext": host, "input": values, "result": result}
        self.page.goto("/chat")
        self.page.evaluate("showApp", shown)
        return self.page.frames[1]


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bundle = tmp_path_factory.mktemp("host") / "host.js"
    program = MODULES / "esbuild" / "bin" / "esbuild"
    ended = node(program, HOST, "--bundle", "--format=iife", f"--outfile={bundle}")
    assert ended.returncode == 0, ended.stderr
    return bundle


@pytest.fixture
def chat(browser: Browser, served: Serving, token: str, bundle: Path) -> Iterator[Chat]:
    url, complaints = f"{served.url}/mcp/{CLOSED}", list[str]()
    with Listening(url, token) as client, open_page(browser, served) as page:
        chat = Chat(page, client)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        outside = {"body": OUTSIDE, "content_type": "text/html"}
        page.route("**/chat", lambda route: route.fulfill(**outside))
        page.add_init_script(path=bundle)
        page.expose_function("callServer", lambda e: chat.call(*e))
        yield chat
    assert complaints == []


def structured(content: Any) -> Any:
    return {"content": [{"type": "text", "text": "…"}], "structuredContent": content}


def column(frame: Frame, number: int) -> list[str]:
    return frame.locator(f"tbody td:nth-child({number})").all_inner_texts()


def back_of(frame: Frame, theme: str) -> str:
    """Return the colour behind a page, in which axe finds nothing."""
    expect(frame.locator("html")).to_have_attribute("data-theme", theme)
    assert violations(frame) == {}
    return str(frame.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_a_table_is_sorted_by_keyboard_and_refreshed(chat: Chat) -> None:
    result = chat.call("find_orders", {"most": 4})
    names = [each["customer"] for each in result["structuredContent"]["result"]]
    names[0] = result["structuredContent"]["result"][0]["customer"] = MARKUP
    frame = chat.show(TABLE, result, "find_orders", most=4)
    expect(frame.get_by_role("status")).to_have_text("Rows: 4")
    assert column(frame, 2) == names
    head = frame.get_by_role("columnheader", name="customer")
    head.get_by_role("button").focus()
    for order, is_down in (("ascending", False), ("descending", True)):
        # The keyboard stays where it was.
        frame.locator(":focus").press("Enter")
        expect(head).to_have_attribute("aria-sort", order)
        assert column(frame, 2) == sorted(names, key=str.lower, reverse=is_down)
    assert (frame.title(), back_of(frame, "light")) == ("Table", "rgb(255, 255, 255)")
    chat.page.evaluate("bridge.setHostContext({theme: 'dark'})")
    assert back_of(frame, "dark") == "rgb(30, 30, 28)"
    frame.get_by_role("button", name="Refresh").press("Enter")
    expect(frame.get_by_text(MARKUP)).to_have_count(0)
    assert chat.calls[1:] == [("find_orders", {"most": 4})]


@pytest.mark.long
def test_the_next_page_and_a_call_that_fails(chat: Chat) -> None:
    first = chat.call("invoice_list", {"paid": True})
    frame = chat.show(TABLE, first, "invoice_list", paid=True)
    count = frame.locator("tbody tr").count()
    frame.get_by_role("button", name="More").click()
    expect(frame.get_by_role("status")).to_have_text(f"Rows: {2 * count}")
    following = {"paid": True, "cursor": first["structuredContent"]["next"]}
    assert chat.calls[1:] == [("invoice_list", following)]
    frame = chat.show(TABLE, first, "order_status", number="?")
    frame.get_by_role("button", name="Refresh").click()
    expect(frame.get_by_role("alert")).to_contain_text("That did not work: Invalid")
    assert len(column(frame, 1)) == count
    # Who does not say which tool it was can call none.
    failed = {"content": [{"type": "text", "text": MARKUP}], "isError": True}
    frame = chat.show(TABLE, {**first, **failed})
    expect(frame.locator("pre")).to_have_text(MARKUP)
    assert frame.get_by_role("button").count() == len(column(frame, 1)) == 0


@pytest.mark.long
def test_values_as_people_read_them(chat: Chat) -> None:
    nested = {"page": {"rows": [json.loads(ROW)], "seen": 1}, "on": False}
    frame = chat.show(TABLE, structured(nested))
    expect(frame.locator("pre")).to_have_text("on: no\nseen: 1")
    texts = frame.locator("tbody td").all_inner_texts()
    assert texts == TEXTS.split("|")
    assert frame.locator("td.number").all_inner_texts() == texts[:3]
    # Without rows the members are shown, and for one of them the text.
    for members, text in (({"a": 1, "b": "c"}, "a: 1\nb: c"), ({"a": 1}, "…")):
        frame = chat.show(TABLE, structured(members))
        expect(frame.locator("pre")).to_have_text(text)
    # A page of the site.
    frame = chat.show("drill/orders.html", structured({"result": [MARKUP]}))
    expect(frame.get_by_role("listitem")).to_have_text(MARKUP)


@pytest.mark.long
def test_a_chart_or_a_table_if_there_is_nothing_to_compare(chat: Chat) -> None:
    numbers = ((0, "a"), (1, "b"), (2, "c"))
    groups = [{"state": each, "count": n, "sum": f"{n}.5"} for n, each in numbers]
    frame = chat.show(CHART, structured({"groups": groups}))
    expect(frame.get_by_role("figure")).to_contain_text("sum, state")
    bars = frame.get_by_role("listitem")
    assert bars.all_inner_texts() == ["a\n0.5", "b\n1.5", "c\n2.5"]
    widths = frame.evaluate(
        "[...document.querySelectorAll('i')].map(e => e.style.width)"
    )
    assert widths == ["20%", "60%", "100%"]
    expect(frame.get_by_role("table")).to_be_hidden()
    frame.get_by_text("As a table").press("Enter")
    assert column(frame, 2) == ["0", "1", "2"]
    back_of(frame, "light")
    for other in ({"sum": "-1.50"}, {"state": "b"}, {"other": "c"}):
        changed = [*groups[1:], {**groups[0], **other}]
        frame = chat.show(CHART, structured({"groups": changed}))
        expect(frame.get_by_role("table")).to_be_visible()
        expect(frame.get_by_role("figure")).to_be_hidden()
