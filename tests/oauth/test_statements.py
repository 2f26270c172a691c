"""How many statements the pages and the token endpoint take, with a thousand apps.

Pages ask the process that serves here what a person sees: its statements count, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from mcp_app.models import Server
from mcp_app.pools.database import writer
from mcp_app.process import current
from mcp_app.process.runtime import Process
from tests.account.apps import many_apps
from tests.oauth.program import (
    CONSENT,
    ORIGIN,
    WAYS,
    Program,
    answer_in,
    page_of,
    sealed_in,
)
from tests.published import published
from tests.statements import counted

APPS: Final = 1_000
PAGE: Final = 14
"""And one for the session, where it is a row."""
KEYS: Final = 11

Result = TypeVar("Result")


@pytest.fixture
def mcp() -> dict[str, Any]:
    return {"AUTHENTICATION": WAYS, "PUBLIC_URL": ORIGIN, "HOSTS": ["*"]}


async def taken(most: int, act: Callable[[], Result]) -> Result:
    def captured() -> tuple[Result, list[str]]:
        with CaptureQueriesContext(connection) as statements:
            result = act()
        return result, [each["sql"] for each in statements.captured_queries]

    async with counted() as of_process:
        result, own = await writer.run(captured)
    statements = [*own, *of_process]
    shown = "\n".join(each[:150] for each in statements)
    assert len(statements) <= most, f"{len(statements)}\n{shown}"
    return result


async def test_signing_in(
    process: Process, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
    user = get_user_model()(username="of-a-thousand-apps")
    server = Server(slug="support", title="Support desk", access="oauth token")
    program, browser = Program(Client()), Client()

    def made() -> None:
        user.save()
        published(server)
        many_apps(user, APPS)
        browser.force_login(user)
        program.register()

    await writer.run(made)
    # It serves, and has its catalogs.
    monkeypatch.setitem(current._alive, process.loop, process)
    await process.gate.wait_for_check()
    page = await taken(PAGE, lambda: page_of(browser, program.request()))
    chosen = {"may": "change", "which": "all", "ends": "90"}
    sent = {"sealed": sealed_in(page), **chosen}
    allowed = await taken(PAGE, lambda: browser.post(CONSENT, sent))
    code = answer_in(allowed)["code"]
    keys = await taken(KEYS, lambda: program.exchange(code))
    token = keys.json()["refresh_token"]
    await taken(KEYS, lambda: program.refresh(token))
    await writer.run(user.delete)
    await writer.run(server.delete)
