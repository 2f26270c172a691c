"""Six stories of staff who make tools: steps are counted, then people call them.

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
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.chromium import log_in, page_of
from tests.browser.conftest import strictly, violations
from tests.browser.hands import DELAY, KEYBOARD, LATE, MOUSE, NARROW, SCRIPTLESS, Hands
from tests.browser.listening import Listening
from tests.browser.test_publishing import picture
from tests.egress.peer import Peer
from tests.fleet.running import PASSWORD, PEOPLE, Fleet, fleet
from tests.marks import long_cases

pytestmark = pytest.mark.xdist_group("browser")

PASTED: Final = """curl 'http://127.0.0.1:{port}/api/parts/P-100?lang=en' \\
  -H 'Authorization: Bearer a-key' -b 'session=5' -k"""
TOP: Final = "top 5 of this month, without cancelled ones"
YEAR: Final = date.today().year
FROM, TO = date.today() - timedelta(days=300), date.today()
OF_HIRES: Final = """FROM fleet_hire
    JOIN fleet_company ON fleet_hire.company_id = fleet_company.id
    JOIN fleet_customer ON customer_id = fleet_customer.id
    WHERE fleet_company.name = :company"""


def make_hires_by_month(hands: Hands) -> None:
    hands.follow("Hires")
    hands.group()
    hands.add("group_by", "begins: month")
    hands.add("measures", "Sum of net total")
    hands.add("filters", "begins")
    hands.choose(hands.part("filters-0-lookup"), "is in the period")
    hands.add("filters", "state")


def make_top_5_of_the_month(hands: Hands) -> None:
    hands.follow("Hires")
    hands.group()
    hands.add("group_by", "customer")
    hands.choose(hands.part("measures-0-path"), "Sum of net total")
    hands.write(hands.part("limit"), "5")
    hands.add("filters", "begins: this month")
    hands.add("filters", "state: not Cancelled")


def make_machine_by_code(hands: Hands) -> None:
    hands.follow("Machines")
    hands.add("filters", "code")
    hands.choose(hands.part("filters-0-lookup"), "is (any case)")
    hands.press(hands.page.locator("summary", has_text="Parameter"))
    hands.press(hands.part("filters-0-required"), "Space")


def make_person_with_next_hire(hands: Hands) -> None:
    hands.follow("Customers")
    hands.add("lists", "hires")
    hands.add("lists-0-filters", "begins: from now on")
    hands.choose(hands.part("lists-0-order"), "begins, oldest first")
    hands.write(hands.part("lists-0-limit"), "1")
    hands.add("filters", "name")
    hands.press(
        hands.part("filters-0-others").and_(hands.page.locator("[value=phone]")),
        "Space",
    )


def make_unpaid_with_their_sum(hands: Hands) -> None:
    hands.follow("Hires")
    hands.add("filters", "paid: no")
    hands.add("filters", "begins")
    hands.add("totals", "Sum of net total")


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
    TOP: Story(
        make_top_5_of_the_month,
        10,
        {},
        lambda it: [
            (each["customer"], float(each["sum_net_total"])) for each in it["groups"]
        ],
        f"""SELECT fleet_customer.name, SUM(net_total) {OF_HIRES}
            AND begins LIKE '{date.today():%Y-%m}-%' AND state != 'cancelled'
            GROUP BY 1 ORDER BY 2 DESC LIMIT 5""",
    ),
    "unpaid": Story(
        make_unpaid_with_their_sum,
        7,
        {"begins_from": f"{FROM}", "begins_to": f"{TO}"},
        lambda it: sorted(
            (each["begins"], float(it["totals"]["sum_net_total"]))
            for each in it["rows"]
        ),
        f"""SELECT begins, SUM(net_total) OVER () {OF_HIRES}
            AND begins BETWEEN '{FROM}' AND '{TO}' AND NOT paid ORDER BY 1""",
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
    "one person": Story(
        make_person_with_next_hire,
        10,
        {"name": "dubois 56163439"},
        lambda it: [
            (each["name"], hire["begins"])
            for each in it["rows"]
            for hire in each["hires"]["rows"]
        ],
        f"""SELECT fleet_customer.name, MIN(begins) {OF_HIRES}
            AND fleet_customer.name LIKE 'Dubois%' AND begins >= '{TO}'""",
    ),
}


@pytest.fixture(
    scope="module", params=[MOUSE, *long_cases(NARROW, SCRIPTLESS, KEYBOARD, LATE)]
)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def site(
    way: str, parts: Peer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Fleet]:
    supplier = {**parts.settings()["peer"], "title": "Parts supplier"}
    sites = json.dumps({"parts": supplier})
    with fleet(tmp_path_factory.mktemp("fleet"), MCP_HTTP=sites) as served:
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
        page.add_init_script(DELAY if way == LATE else "")
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
    see_few_steps(hands, story.steps)
    if name == TOP:
        see_short_form(page)
    [tool] = rows_of(site, "SELECT name FROM mcp_app_tool ORDER BY id DESC LIMIT 1")[0]
    for person, company in PEOPLE.items():
        with Listening(f"{site.served.url}/mcp", site.tokens[person]) as client:
            answer = client.ask("call_tool", tool, story.arguments)
        assert not answer.is_error, answer
        expected = rows_of(site, story.reckoned, company=company)
        assert story.rows(answer.structured_content) == expected


@pytest.mark.usefixtures("axe")
def test_one_part_pasted_from_a_browser(hands: Hands, site: Fleet, parts: Peer) -> None:
    page = hands.page
    page.goto("/admin/mcp_app/tool/")
    hands.follow("Add tool")
    hands.follow("Parts supplier")
    pasted = page.get_by_label("Address or curl command")
    hands.write(pasted, PASTED.format(port=parts.port))
    hands.press_button("Take it apart")
    expect(page.get_by_role("status").first).to_contain_text(
        "GET at Parts supplier. Left out: cookies, -k, the header Authorization"
    )
    hands.write(page.get_by_label("Parameter for P-100"), "sku")
    hands.write(page.get_by_label("Parameter for en"), "lang")
    hands.press_button("Fetch")
    tree = page.locator(".mcp-tree")
    expect(tree).to_contain_text("“Hydraulic hose 2 m”")
    hands.press(tree.get_by_label("internal_cost").first, "Space")
    see_call(hands)
    see_fit(hands)
    hands.press_button("Save and publish…")
    hands.press_button("Publish version 1")
    expect(page.locator(".messagelist")).to_contain_text("Version 1 is published.")
    see_few_steps(hands, 10)
    with Listening(f"{site.served.url}/mcp", site.tokens["nora"]) as client:
        name, both = "parts-supplier-parts", {"sku": "P-100", "lang": "de"}
        answer = client.ask("call_tool", name, both).structured_content
        assert parts.received[-1].target == "/api/parts/P-100?lang=de"
        assert client.ask("call_tool", name, {**both, "sku": "none"}).is_error
        assert client.ask("call_tool", name, {"sku": "P-100"}).is_error
    assert answer["price"] == 48.9
    assert "internal_cost" not in answer


@pytest.mark.usefixtures("axe")
def test_two_tools_from_their_document(hands: Hands, site: Fleet, parts: Peer) -> None:
    page = hands.page
    page.goto("/admin/mcp_app/tool/")
    hands.follow("From another server")
    label = f"Parts supplier (http://127.0.0.1:{parts.port}/api)"
    hands.choose(page.get_by_label("Site", exact=True), label)
    hands.press_button("Read it")
    photos = page.locator("tr", has_text="/photos")
    expect(photos).to_contain_text("Cannot be a tool: it wants multipart/form-data")
    for path in ("/parts", "/parts/{sku}"):
        hands.press(page.get_by_label(f"GET {path}", exact=True), "Space")
    see_fit(hands)
    what = "what is ticked" if hands.way == SCRIPTLESS else "2 tools"
    hands.press_button(f"Make and publish {what}…")
    hands.press_button("Publish the ticked ones")
    expect(page.locator(".messagelist")).to_contain_text("2 were published.")
    see_few_steps(hands, 7)
    with Listening(f"{site.served.url}/mcp", site.tokens["nora"]) as client:
        answer = client.ask("call_tool", "get_part", {"sku": "P-100"})
    # Nobody has chosen what clients get: nothing is lost.
    assert answer.structured_content["supplier"]["name"] == "Hydra GmbH"


def see_few_steps(hands: Hands, most: int) -> None:
    """Without scripts, and by keys alone, it may be more of them."""
    assert hands.way in (SCRIPTLESS, KEYBOARD) or hands.steps <= most


def see_call(hands: Hands) -> None:
    if hands.way == MOUSE:
        hands.part("site").evaluate("it => it.closest('fieldset').scrollIntoView()")
        picture(hands.page, "http")


def see_fit(hands: Hands) -> None:
    """See that what is there can be read, and keeps to the width of the page."""
    page = hands.page
    for width in () if hands.way == SCRIPTLESS else (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert violations(page) == {}
        assert page.evaluate("document.documentElement.scrollWidth") <= width


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


@pytest.mark.parametrize("way", [MOUSE], indirect=True, scope="module")
def test_a_lost_right_is_not_taken_for_a_lost_login(hands: Hands, site: Fleet) -> None:
    page = hands.page
    page.goto("/admin/mcp_app/tool/add/?kind=query&model=fleet.Hire")
    turn_groups(site)
    hands.part("filters-add").select_option(label="state")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("You have no right to do this any more.")
    turn_groups(site)
    hands.add("filters", "state")
    expect(alert).to_be_hidden()


def turn_groups(site: Fleet) -> None:
    """Take everybody out of their groups, or let them in again."""
    with closing(sqlite3.connect(site.database)) as connection, connection:
        connection.execute("UPDATE auth_user_groups SET group_id = -group_id")


@pytest.mark.parametrize("way", [MOUSE], indirect=True, scope="module")
def test_rows_are_offered_where_a_line_is_opened(hands: Hands, site: Fleet) -> None:
    page = hands.page
    page.goto("/admin/mcp_app/tool/add/?kind=query&model=fleet.Hire")
    hands.add("filters", "customer")
    hands.press_button("Save")
    expect(page.locator(".messagelist")).to_contain_text("Saved.")
    offered = page.locator("#config-0-filters-0-texts")
    expect(offered).to_have_count(0)
    page.locator("summary", has_text="customer is one of").click()
    value = hands.part("filters-0-value")
    value.click()
    expect(offered.locator("option").first).to_be_attached()
    expect(value).to_be_focused()
