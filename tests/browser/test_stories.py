"""Four stories of staff who make a tool: steps are counted, then three people call it.

A click, a text and a choice are a step each.  Everybody gets the rows of their company.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date, timedelta
from typing import Any, Final, NamedTuple

import pytest
from playwright.sync_api import Browser, Locator, Page, StorageState, expect

from tests.browser.chromium import log_in, page_of
from tests.browser.conftest import strictly
from tests.browser.keyboard import STOPS, strike, tab_to, write
from tests.browser.listening import Listening
from tests.fleet.running import PASSWORD, PEOPLE, Fleet, fleet
from tests.marks import long_cases

pytestmark = pytest.mark.xdist_group("browser")

MOUSE, NARROW, SCRIPTLESS, KEYBOARD = "mouse", "narrow", "scriptless", "keyboard"
CHOSEN: Final = "list => list.selectedOptions[0]?.text"
YEAR: Final = date.today().year
FROM, TO = date.today() - timedelta(days=300), date.today()
OF_HIRES: Final = """FROM fleet_hire
    JOIN fleet_company ON fleet_hire.company_id = fleet_company.id
    JOIN fleet_customer ON customer_id = fleet_customer.id
    WHERE fleet_company.name = :company"""


class Hands:
    """What somebody does to a page, counted; `way` says with what."""

    def __init__(self, page: Page, way: str) -> None:
        self.page, self.way, self.steps = page, way, 0

    def part(self, name: str) -> Locator:
        return self.page.locator(f"[name='config-0-{name}']")

    def press(self, wanted: Locator, key: str = "Enter") -> None:
        self.steps += 1
        if self.way == KEYBOARD:
            strike(self.page, wanted, key)
        else:
            wanted.click()

    def press_button(self, name: str) -> None:
        self.press(self.page.get_by_role("button", name=name, exact=True))

    def follow(self, name: str) -> None:
        self.press(self.page.locator("#content").get_by_role("link", name=name).first)
        self.page.wait_for_load_state("load")

    def write(self, wanted: Locator, text: str) -> None:
        self.steps += 1
        if self.way == KEYBOARD:
            write(self.page, wanted, text)
        else:
            wanted.fill(text)

    def choose(self, name: str, label: str) -> None:
        self.steps += 1
        wanted = self.part(name)
        if self.way != KEYBOARD:
            wanted.select_option(label=label)
            return
        tab_to(self.page, wanted)
        for _ in range(STOPS):
            self.page.keyboard.press(label[0])
            if name.endswith("-add") or wanted.evaluate(CHOSEN) == label:
                return
        raise AssertionError(f"The keyboard does not come to {label}.")

    def add(self, lines: str, label: str) -> None:
        """Choose what adds a line, and wait for it."""
        line = self.page.locator(f"[name^='config-0-{lines}-'][name$='-path']")
        count = line.count()
        self.choose(f"{lines}-add", label)
        self.go_on(self.part(f"{lines}-add"))
        expect(line).to_have_count(count + 1)

    def group(self) -> None:
        wanted = self.page.get_by_label("Groups: counts and sums")
        if self.way == KEYBOARD:
            tab_to(self.page, self.part("answer").first)
            self.press(self.part("answer").first, "ArrowRight")
        else:
            self.press(wanted)
        self.go_on(wanted)
        expect(self.part("group_by-add")).to_be_attached()

    def go_on(self, wanted: Locator) -> None:
        """Without scripts, press the button after it, which shows what follows."""
        if self.way == SCRIPTLESS:
            self.press(wanted.locator("xpath=following::button[1]"))


def make_hires_by_month(hands: Hands) -> None:
    hands.follow("Hires")
    hands.group()
    hands.add("group_by", "begins: month")
    hands.add("measures", "Sum of net total")
    hands.add("filters", "begins")
    hands.choose("filters-0-lookup", "is in the period")
    hands.add("filters", "state")


def make_top_customers(hands: Hands) -> None:
    hands.follow("Hires")
    hands.group()
    hands.add("group_by", "customer")
    hands.choose("measures-0-path", "Sum of net total")
    hands.write(hands.part("limit"), "10")
    hands.add("filters", "begins")
    hands.write(hands.page.locator("#id_title"), "Top customers")


def make_machine_by_code(hands: Hands) -> None:
    hands.follow("Machines")
    hands.add("filters", "code")
    hands.choose("filters-0-lookup", "is (any case)")
    hands.press(hands.page.locator("summary", has_text="Parameter"))
    hands.press(hands.part("filters-0-required"), "Space")


def make_customers_with_hires(hands: Hands) -> None:
    hands.follow("Customers")
    hands.add("lists", "hires")
    hands.choose("lists-0-order", "begins, newest first")
    hands.write(hands.part("lists-0-limit"), "5")
    hands.add("filters", "name")


class Story(NamedTuple):
    """How a tool is made, in how many steps, and what it answers to a company."""

    make: Callable[[Hands], None]
    steps: int
    arguments: dict[str, Any]
    rows: Callable[[Any], list[tuple[Any, ...]]]
    reckoned: str


STORIES: Final = {
    "hires by month": Story(
        make_hires_by_month,
        10,
        {"begins": "this_year", "state": ["out", "back"]},
        lambda it: [
            (each["begins_month"], each["hires"], float(each["sum_net_total"]))
            for each in it["groups"]
        ],
        f"""SELECT strftime('%Y-%m-01', begins), COUNT(*), SUM(net_total) {OF_HIRES}
            AND state IN ('out', 'back') AND begins LIKE '{YEAR}-%' GROUP BY 1""",
    ),
    "top customers": Story(
        make_top_customers,
        10,
        {"begins_from": f"{FROM}", "begins_to": f"{TO}"},
        lambda it: [
            (each["customer"], float(each["sum_net_total"])) for each in it["groups"]
        ],
        f"""SELECT fleet_customer.name, SUM(net_total) {OF_HIRES}
            AND begins BETWEEN '{FROM}' AND '{TO}'
            GROUP BY 1 ORDER BY 2 DESC LIMIT 10""",
    ),
    "one machine": Story(
        make_machine_by_code,
        8,
        {"code": "north-2"},
        lambda it: [(each["code"], each["name"]) for each in it["rows"]],
        """SELECT code, fleet_machine.name FROM fleet_machine JOIN fleet_company
            ON company_id = fleet_company.id
            WHERE fleet_company.name = :company AND code = 'North-2'""",
    ),
    "customers with their hires": Story(
        make_customers_with_hires,
        8,
        {"name": "SILVA"},
        lambda it: [
            (each["name"], hire["begins"])
            for each in it["rows"]
            for hire in each["hires"]["rows"]
        ],
        f"""SELECT fleet_customer.name, begins {OF_HIRES}
            AND fleet_customer.name LIKE 'Silva%' ORDER BY begins DESC LIMIT 5""",
    ),
}


@pytest.fixture(
    scope="module", params=[MOUSE, *long_cases(NARROW, SCRIPTLESS, KEYBOARD)]
)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def site(way: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet(tmp_path_factory.mktemp("fleet")) as served:
        yield served


@pytest.fixture(scope="module")
def known(browser: Browser, site: Fleet) -> StorageState:
    with page_of(browser, site.served.url) as page:
        page.goto("/admin/mcp_app/")
        log_in(page, "nora", PASSWORD)
        return page.context.storage_state()


@pytest.fixture
def hands(
    browser: Browser, site: Fleet, known: StorageState, way: str
) -> Iterator[Hands]:
    options: dict[str, Any] = {
        "viewport": {"width": 390 if way == NARROW else 1280, "height": 800},
        "java_script_enabled": way != SCRIPTLESS,
        "storage_state": known,
    }
    with page_of(browser, site.served.url, **options) as page, strictly(page):
        yield Hands(page, way)
        page.unroute_all(behavior="wait")


@pytest.mark.parametrize("name", STORIES)
def test_a_tool_is_made_in_few_steps_for_the_rows_of_its_caller(
    hands: Hands, site: Fleet, name: str
) -> None:
    story, page = STORIES[name], hands.page
    page.goto("/admin/mcp_app/tool/")
    hands.follow("Add tool")
    story.make(hands)
    hands.press_button("Save and publish…")
    hands.press_button("Publish version 1")
    expect(page.locator(".messagelist")).to_contain_text("Version 1 is published.")
    assert hands.way in (SCRIPTLESS, KEYBOARD) or hands.steps <= story.steps
    if name == "top customers":
        see_short_form(page)
    [tool] = rows_of(site, "SELECT name FROM mcp_app_tool ORDER BY id DESC LIMIT 1")[0]
    for person, company in PEOPLE.items():
        with Listening(f"{site.served.url}/mcp", site.tokens[person]) as client:
            answer = client.ask("call_tool", tool, story.arguments)
        assert not answer.is_error, answer
        expected = rows_of(site, story.reckoned, company=company)
        assert story.rows(answer.structured_content) == expected


def rows_of(site: Fleet, statement: str, **values: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(site.database)) as connection:
        return connection.execute(statement, values).fetchall()


def see_short_form(page: Page) -> None:
    page.locator(".mcp-tabs").get_by_role("link", name="Edit").click()
    page.wait_for_load_state("load")
    for width, most in ((1280, 1700), (390, 3100)):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollHeight") <= most


@pytest.mark.parametrize("way", [MOUSE], indirect=True, scope="module")
def test_what_was_chosen_outlives_login_and_back(hands: Hands, site: Fleet) -> None:
    page = hands.page
    page.goto("/admin/mcp_app/tool/add/?kind=query&model=fleet.Hire")
    hands.group()
    page.locator("#id_title").fill("Hires of us")
    page.get_by_role("link", name="Tools", exact=True).first.click()
    page.wait_for_load_state("load")
    page.once("dialog", lambda dialog: dialog.accept())
    page.go_back()
    expect(page.get_by_label("Groups: counts and sums")).to_be_checked()
    expect(hands.part("group_by-add")).to_be_attached()
    expect(page.locator("#id_title")).to_have_value("Hires of us")

    page.context.clear_cookies()
    told = page.get_by_role("alert").filter(has_text="You are logged out.")
    hands.part("group_by-add").select_option(label="customer")
    expect(told).to_be_visible()
    hands.press_button("Save")
    expect(told).to_be_visible()
    with page.context.new_page() as other:
        other.goto("/admin/")
        log_in(other, "nora", PASSWORD)
        other.get_by_role("heading", name="Site administration").wait_for()
    hands.add("group_by", "state")
    expect(told).to_be_hidden()
    hands.press_button("Save")
    expect(page.locator(".messagelist")).to_contain_text("Saved.")
    [config] = rows_of(site, "SELECT config FROM mcp_app_tool ORDER BY id DESC")[0]
    assert json.loads(config)["group_by"] == ["state"]
