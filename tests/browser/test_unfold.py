"""The admin's pages in a site that uses django-unfold, in Chromium.

What axe finds on unfold's own pages of users is unfold's, and not looked at on ours.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import pytest
from django.contrib.admin import site
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.chromium import unfold
from tests.browser.conftest import open_page, violations
from tests.browser.test_publishing import PICTURES, STILL
from tests.drill.databases import prepared_file
from tests.drill.ports import free_port
from tests.marks import long_cases
from tests.newcomer.programs import CHECKOUT, Serving, run, serving, shell_environment

# They share Chromium with the others, and a server of their own.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]

PASSWORD: Final = "a-Long-enough-1"
SERVE: Final = [sys.executable, "-m", "tests.drill.serve"]
PREPARE: Final = f"""
from django.contrib import admin
from django.contrib.auth.models import User
from unfold.admin import ModelAdmin
User.objects.create_superuser("admin", "admin@example.com", {PASSWORD!r})
for model, each in admin.site._registry.items():
    print(model._meta.label, isinstance(each, ModelAdmin))
"""
"""Adds somebody who may do everything, and says which pages are unfold's."""
BORDERLESS: Final = """() => [...document.querySelectorAll(
        "#content :is(input:not([type=checkbox], [type=radio]), select, textarea)")]
    .filter(field => !["hidden", "submit"].includes(field.type))
    .filter(field => field.checkVisibility() && !field.closest("#changelist"))
    .filter(field => {
        const style = getComputedStyle(field)
        return style.borderTopStyle == "none" || parseFloat(style.borderTopWidth) < 1
    }).map(field => field.outerHTML)"""
LISTED: Final = "document.querySelector('#result_list tbody tr a').getAttribute('href')"


class Look(NamedTuple):
    scheme: str
    width: int


WIDE: Final = Look("light", 1280)
NARROW: Final = Look("dark", 390)
LOOKS: Final = (WIDE, NARROW, Look("dark", 1280), Look("light", 390))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    database = tmp_path_factory.mktemp("unfold") / "db.sqlite3"
    shutil.copy(prepared_file(), database)
    return shell_environment(
        UNFOLD="there",
        DATABASE_URL=f"sqlite:///{database}",
        ROWS="there",
        SERVER="uvicorn",
        DJANGO_SETTINGS_MODULE="tests.drill.settings",
    )


@pytest.fixture(scope="module")
def prepared(environment: Mapping[str, str]) -> str:
    manage = [sys.executable, "manage.py", "shell", "-v", "0", "-c", PREPARE]
    return run(manage, CHECKOUT, environment)


@pytest.fixture(scope="module")
def unfolded(environment: Mapping[str, str], prepared: str) -> Iterator[Serving]:
    port = free_port()
    given = {**environment, "PORT": str(port)}
    with serving(SERVE, CHECKOUT, given, port) as served:
        yield served


@pytest.fixture(scope="module")
def known(browser: Browser, unfolded: Serving) -> StorageState:
    with open_page(browser, unfolded) as page:
        page.goto("/admin/")
        page.locator("[name=username]").fill("admin")
        page.locator("[name=password]").fill(PASSWORD)
        page.locator("[name=password]").press("Enter")
        page.locator("#nav-sidebar").wait_for(state="attached")
        return page.context.storage_state()


@contextmanager
def looking(
    browser: Browser, unfolded: Serving, known: StorageState, look: Look
) -> Iterator[Page]:
    complaints: list[str] = []
    options: Mapping[str, Any] = {
        "storage_state": known,
        "color_scheme": look.scheme,
        "viewport": {"width": look.width, "height": 800},
    }
    with open_page(browser, unfolded, **options) as page:
        page.on("pageerror", lambda error: complaints.append(str(error)))
        yield page
    assert complaints == []


def opened(page: Page, path: str) -> None:
    """Go to a page of the admin, and wait until nothing moves."""
    answer = page.goto(f"/admin/{path}")
    assert answer is not None
    assert answer.ok, path
    page.wait_for_load_state("load")
    # Until Alpine has come, everything is hidden.
    expect(page.locator("html")).not_to_have_attribute("x-cloak", re.compile(""))
    assert page.evaluate(STILL) == 0


def pages(page: Page) -> dict[str, str]:
    opened(page, "mcp_app/tool/")
    tool = str(page.evaluate(LISTED)).removeprefix("/admin/").removesuffix("change/")
    return {
        "home": "mcp_app/",
        "tools": "mcp_app/tool/",
        "kinds": "mcp_app/tool/add/",
        "tool-add": "mcp_app/tool/add/?kind=text",
        "tool": f"{tool}change/",
        "publish": f"{tool}publish/",
        "prompt-add": "mcp_app/prompt/add/?kind=text",
        "server": "mcp_app/server/1/change/",
        "connect": "mcp_app/server/1/connect/",
        "tokens": "mcp_app/accesstoken/",
        "token-add": "mcp_app/accesstoken/add/",
        "calls": "mcp_app/call/",
        "find": "mcp_app/server/find/?q=order",
    }


def test_pages_are_of_its_class(prepared: str) -> None:
    """unfold has all template tags loaded while that class is being made."""
    ours = [line for line in prepared.splitlines() if line.startswith("mcp_app.")]
    assert len(ours) == len(
        [model for model in site._registry if model._meta.app_label == "mcp_app"]
    )
    assert {line.split()[-1] for line in ours} == {"True"}


@pytest.mark.long
@pytest.mark.parametrize("look", LOOKS)
def test_pages_look_as_unfold_does(
    browser: Browser, unfolded: Serving, known: StorageState, look: Look
) -> None:
    with looking(browser, unfolded, known, look) as page:
        theirs: set[str] = set()
        for path in ("auth/user/", "auth/user/1/change/"):
            opened(page, path)
            theirs |= violations(page).keys()
        for name, path in pages(page).items():
            opened(page, path)
            picture(page, name, look)
            assert page.evaluate(BORDERLESS) == [], name
            assert page.evaluate("document.documentElement.scrollWidth") <= look.width
            ours = violations(page)
            assert {rule: ours[rule] for rule in ours.keys() - theirs} == {}, name


def picture(page: Page, name: str, look: Look) -> None:
    if "PICTURES" in os.environ:
        path = PICTURES / f"unfold-{name}-{look.scheme}-{look.width}.png"
        page.screenshot(path=path, full_page=True)


@pytest.mark.parametrize("look", [WIDE, *long_cases((NARROW,))])
def test_a_tool_is_made_and_published(
    browser: Browser, unfolded: Serving, known: StorageState, look: Look
) -> None:
    """unfold's row of buttons lies outside the form, and has ours all the same."""
    with looking(browser, unfolded, known, look) as page:
        opened(page, "mcp_app/tool/add/?kind=text")
        assert page.evaluate(BORDERLESS) == []
        page.locator("#id_title").press_sequentially(f"Hours {look.scheme}")
        page.locator("#id_description").fill("Says when the shop is open.")
        page.locator("#id_text").fill("From nine to five.")
        unfold(page)
        page.locator("#id_permission").fill("auth.view_usr")
        press(page, "Save and publish…")
        errors = page.get_by_role("region", name="Please correct the error below.")
        expect(errors).to_contain_text("Did you mean “auth.view_user”?")
        # Django's own sentence is not said twice.
        expect(page.locator("p.errornote")).to_be_hidden()
        page.locator("#id_permission").fill("")
        page.get_by_label("Nothing: it only reads").check()
        press(page, "Save and publish…")
        press(page, "Publish version 1")
        expect(page.locator("#main")).to_contain_text("is published")
        expect(page.locator(".mcp-state").first).to_have_text("Published")


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
    page.wait_for_load_state("load")
