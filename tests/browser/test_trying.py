"""Try it in Chromium: lines while a call runs, its end, and questions."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from mcp_app.admin.editors.parameter_values import SHAPES
from tests.browser.chromium import PATIENCE_MS, log_in, page_of
from tests.browser.test_publishing import picture, serious
from tests.drill.databases import prepared_file
from tests.drill.people import NAME, PASSWORD, add_superuser, page_of_tool
from tests.drill.running import THERE, DrillServer, started

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]

POLICY: Final = "default-src 'self'; img-src 'self' data:; media-src data:"
EVERYTHING: Final = "json_schema_2020_12_tool"
"""A tool whose working copy takes one argument of each type."""
SIZES: Final = ["small", "large"]
EACH_TYPE: Final[dict[str, Any]] = {
    **SHAPES,
    "left_out": SHAPES["text"],
    "empty": SHAPES["text"],
    "choice": {**SHAPES["choice"], "enum": SIZES},
    "choices": {"type": "array", "items": {"type": "string", "enum": SIZES}},
}
VALUES: Final[dict[str, tuple[str | list[str], object]]] = {
    "text": ("tea", "tea"),
    "long": ("one\ntwo", "one\ntwo"),
    "integer": ("-7", -7),
    "number": ("0.5", 0.5),
    "boolean": (["no"], False),
    "choice": (["large"], "large"),
    "choices": (SIZES, SIZES),
    "date": ("2026-01-31", "2026-01-31"),
    "datetime": ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
    "email": ("ana@example.org", "ana@example.org"),
    "url": ("https://example.org/", "https://example.org/"),
    "texts": ("a, b", ["a", "b"]),
    "integers": ("1, 2", [1, 2]),
    "numbers": ("1, 2.5", [1, 2.5]),
    "json": ('{"a": [null]}', {"a": [None]}),
    "empty": ('""', ""),
}
WATCH: Final = """() => {
    window.seen = [];
    const place = document.querySelector("[data-mcp-result]");
    new MutationObserver(() => window.seen.push([
        place.querySelectorAll(".mcp-along li").length,
        !!place.querySelector("button[type=button]"),
    ])).observe(place, { childList: true, subtree: true });
}"""


@dataclass(frozen=True, slots=True)
class Site:
    server: DrillServer
    database: Path
    page: Page
    refused: list[str]

    def open(self, name: str, model: str = "tool") -> Page:
        self.page.goto(page_of_tool(self.database, name, model))
        return self.page

    def until_logged(self, outcome: str) -> None:
        statement = "SELECT count(*) FROM mcp_app_call WHERE outcome = ?"
        end = time.monotonic() + PATIENCE_MS / 1_000
        with closing(sqlite3.connect(self.database)) as connection:
            while connection.execute(statement, [outcome]).fetchone() == (0,):
                assert time.monotonic() < end
                time.sleep(0.05)


def strictly(page: Page, policy: str = POLICY) -> None:
    def serve(route: Route) -> None:
        if route.request.resource_type != "document":
            # A stream must not wait for its end.
            route.continue_()
            return
        answer = route.fetch(max_redirects=0)
        headers = {"content-security-policy": policy, **answer.headers}
        route.fulfill(response=answer, headers=headers)

    page.route("**/admin/**", serve)


def listen(page: Page, refused: list[str]) -> None:
    page.on(
        "console",
        lambda said: refused.append(said.text) if "Security" in said.text else None,
    )
    page.on("pageerror", lambda error: refused.append(str(error)))


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    file = Path(
        shutil.copy(prepared_file(), tmp_path_factory.mktemp("trying") / "db.sqlite3")
    )
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "UPDATE mcp_app_tool SET input_schema = ?, content_hash = ''"
            " WHERE name = ?",
            [json.dumps({"properties": EACH_TYPE}), EVERYTHING],
        )
    with open_site(browser, file, THERE) as opened:
        yield opened


@contextmanager
def open_site(browser: Browser, file: Path, env: Mapping[str, str]) -> Iterator[Site]:
    add_superuser(file)
    server = started("uvicorn", {"DATABASE_URL": f"sqlite:///{file}", **env})
    refused: list[str] = []
    with page_of(browser, server.url.removesuffix("/mcp")) as page:
        page.goto("/admin/")
        log_in(page, NAME, PASSWORD)
        page.get_by_role("heading", name="Site administration").wait_for()
        listen(page, refused)
        strictly(page)
        yield Site(server, file, page, refused)
        page.unroute_all(behavior="wait")
    assert server.stop() == 0, server.output
    assert refused == []


def field(page: Page, name: str) -> Any:
    return page.locator("#mcp-try").get_by_label(name)


def test_lines_come_while_it_runs_and_the_answer_is_saved(site: Site) -> None:
    page = site.open("drill_count")
    page.get_by_label("Dry run").uncheck()
    field(page, "n (required)").fill("6")
    page.evaluate(WATCH)
    delay = field(page, "delay_ms")
    delay.fill("300")
    delay.press("Control+Enter")
    result = page.locator("[data-mcp-result]")
    expect(result).to_contain_text("done 6")
    expect(page.locator("#mcp-result-title")).to_be_focused()
    seen = page.evaluate("window.seen")
    # Each is there before the next one, and while one can stop waiting; the last one
    # comes with the answer.
    assert {1, 2, 3, 4, 5} <= {count for count, can_stop in seen if can_stop}
    assert serious(page) == []
    page.set_viewport_size({"width": 320, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.set_viewport_size({"width": 1280, "height": 800})
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the answer").click()
    answer = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert answer["result"]["content"][0]["text"] == "done 6"


def test_what_was_typed_outlives_the_login(site: Site) -> None:
    page = site.open("drill_add")
    field(page, "a (required)").fill("2")
    field(page, "b (required)").fill("3")
    page.context.clear_cookies()
    result = page.locator("[data-mcp-result]")
    page.get_by_role("button", name="Run").click()
    expect(result).to_contain_text("Nothing was run: your login has ended")
    with page.context.new_page() as other:
        other.goto("/admin/")
        log_in(other, NAME, PASSWORD)
        other.get_by_role("heading", name="Site administration").wait_for()
    page.get_by_role("button", name="Run").click()
    expect(result).to_contain_text("5")


def test_who_stops_waiting_ends_the_call(site: Site) -> None:
    page = site.open("drill_count")
    field(page, "n (required)").fill("10000")
    field(page, "delay_ms").fill("50")
    field(page, "Dry run").uncheck()
    page.get_by_role("button", name="Run").press("Enter")
    stop = page.get_by_role("button", name="Stop waiting")
    expect(stop).to_be_focused()
    expect(page.locator("[data-mcp-result]")).to_contain_text("Running for")
    # Before that the call may not have begun, and then there is nothing to cancel.
    expect(page.locator("[data-mcp-result]")).to_contain_text("progress 1 of 10000")
    stop.press("Enter")
    said = "You stopped waiting: the call was cancelled."
    expect(page.locator("[data-mcp-result]")).to_contain_text(said)
    expect(stop).to_have_count(0)
    site.until_logged("cancelled")
    field(page, "n (required)").fill("1")
    page.get_by_role("button", name="Run").press("Enter")
    expect(page.locator("[data-mcp-result]")).to_contain_text("done 1")


def test_a_question_is_answered(site: Site) -> None:
    page = site.open("drill_ask")
    field(page, "question (required)").fill("How are you?")
    # Enter runs it, and does nothing else.
    field(page, "question (required)").press("Enter")
    question = page.get_by_role("group", name="A question")
    expect(question).to_contain_text("How are you?")
    assert serious(page) == []
    box = question.get_by_role("textbox").first
    box.fill("Well.")
    box.press("Enter")
    expect(page.locator("[data-mcp-result]")).to_contain_text("Well.")
    expect(question).to_have_count(0)


def test_a_question_of_each_kind_is_answered(site: Site) -> None:
    page = site.open("test_input_required_result_multiple_inputs")
    page.get_by_role("button", name="Run").click()
    questions = page.get_by_role("group", name="A question")
    expect(questions).to_have_count(3)
    assert serious(page) == []
    questions.get_by_label("name (required)").fill("Ana")
    questions.get_by_label("What the model answers").fill("Welcome,")
    questions.get_by_label("Folders").fill("file:///home/ana\nfile:///srv")
    page.get_by_role("button", name="Answer").last.click()
    result = page.locator("[data-mcp-result]")
    expect(result).to_contain_text("Welcome, Ana, with 2 roots")
    page = site.open("drill_ask_url")
    page.get_by_role("button", name="Run").click()
    link = page.get_by_role("link", name="Open the page (opens example.com)")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    page.get_by_role("button", name="Answer").last.click()
    expect(page.locator("[data-mcp-result]")).to_contain_text("accepted")


def test_an_argument_of_each_type(site: Site) -> None:
    page = site.open(EVERYTHING)
    for name, (text, _) in VALUES.items():
        box = page.locator("#mcp-try").get_by_label(name, exact=True)
        if name == "choices":
            group = page.get_by_role("group", name=name)
            for each in text:
                group.get_by_label(each).check()
        elif isinstance(text, list):
            box.select_option(text)
        else:
            box.fill(text)
    page.get_by_role("button", name="Run").click()
    page.get_by_text("For developers: messages").click()
    sent = page.get_by_label("From the client").inner_text()
    body = json.loads(sent.partition("\n\n")[2])
    assert body["params"]["arguments"] == {
        name: value for name, (_, value) in VALUES.items()
    }
    assert "left_out" in EACH_TYPE


@pytest.mark.long
def test_from_the_lists_to_the_answer(staff: Page) -> None:
    """As the documentation shows it, on the demo."""
    staff.goto("/admin/mcp_app/tool/")
    staff.get_by_role("link", name="Try it Order status").click()
    field(staff, "number (required)").fill("1042")
    staff.get_by_role("button", name="Run").click()
    expect(staff.locator("[data-mcp-result]")).to_contain_text('"number": 1042')
    picture(staff, "try")
    staff.goto("/admin/mcp_app/server/")
    staff.get_by_role("link", name="/mcp", exact=True).click()
    staff.get_by_role("link", name="What clients see").click()
    staff.get_by_role("link", name="book_table").click()
    field(staff, "day (required)").fill("Friday")
    staff.get_by_role("button", name="Run").click()
    expect(staff.get_by_role("group", name="A question")).to_be_visible()
    picture(staff, "try-question")


def test_what_cannot_be_read_is_told_at_its_field(site: Site) -> None:
    page = site.open("drill_add")
    field(page, "a (required)").fill("two")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was run.")
    expect(field(page, "a (required)")).to_have_value("two")
    expect(page.locator(".mcp-field.errors")).to_contain_text("is not a whole number")
    # The page that came instead works as the first did.
    field(page, "a (required)").fill("2")
    field(page, "b (required)").fill("3")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("[data-mcp-result]")).to_contain_text("5")
    expect(page.locator(".errornote, [role=alert]")).to_have_count(0)


def test_what_is_too_large_says_so_and_stays(site: Site) -> None:
    page = site.open("drill_echo")
    page.get_by_text("Give the values as JSON").click()
    area = page.get_by_label("Values as JSON", exact=True)
    area.evaluate("area => (area.value = 'a'.repeat(3_000_000))")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("[data-mcp-result]")).to_contain_text("so nothing was run")
    assert area.evaluate("area => area.value.length") == 3_000_000


def test_an_image_and_a_sound_are_drawn(site: Site) -> None:
    page = site.open("static-binary", "resource")
    page.get_by_role("button", name="Run").click()
    image = page.locator("img.mcp-drawn")
    expect(image).to_be_visible()
    assert image.evaluate("image => image.naturalWidth") > 0
    page = site.open("test_audio_content")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("[data-mcp-result]")).to_contain_text("Sound: audio/wav")
    assert serious(page) == []


def test_the_strictest_policy_takes_pictures_and_sounds_alone(site: Site) -> None:
    page = site.page
    strictly(page, "default-src 'self'")
    for name, words in (
        ("test_image_content", "Image"),
        ("test_audio_content", "Sound"),
        ("test_simple_text", "simple text"),
    ):
        site.open(name)
        page.get_by_role("button", name="Run").click()
        expect(page.locator("[data-mcp-result]")).to_contain_text(words)
    strictly(page)
    refused, site.refused[:] = [*site.refused], []
    assert {"img-src", "media-src"} == {
        word for each in refused for word in re.findall(r"'(\w+-src)' was not", each)
    }, refused
