"""The console of the admin is a caller like others: it reaches nothing of anybody."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from django.contrib.auth import get_user_model

from mcp_app.interface.principal import CONSOLE, Principal
from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.transports.in_process import Caller, InProcessClient, Message
from tests.asgi_client import EVERYTHING
from tests.attacks.callers import SLUG, Callers, callers, of_era, victim, whole
from tests.attacks.matrix import HTTP, ROWS
from tests.attacks.test_matrix import goes_on
from tests.behaviours import Stage
from tests.marks import NEWEST_FIRST
from tests.oauth.program import ORIGIN, WAYS
from tests.serving import _nothing_untold
from tests.wire.middleware import WireCheck

PEOPLE: Final = ["ana", "ben", ""]
"""She whose things they are, somebody else, and nobody."""


@pytest.fixture
def mcp() -> dict[str, Any]:
    return {"AUTHENTICATION": WAYS, "PUBLIC_URL": ORIGIN, "HOSTS": ["*"]}


@pytest.fixture
async def who(process: Process) -> AsyncIterator[Callers]:
    async with callers() as made:
        await _nothing_untold(process)
        yield made


async def _principal(name: str) -> Principal:
    if not name:
        return Principal(kind=CONSOLE, client="staff", permissions=frozenset())
    user: Any = await get_user_model().objects.aget(username=name)
    return Principal(kind=CONSOLE, client="staff", user_id=str(user.pk), user_name=name)


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_nothing_of_a_client_is_reached_from_the_console(
    application: WireCheck, who: Callers, stage: Stage, process: Process, version: str
) -> None:
    target = await victim(HTTP, version, application, who, stage)
    seen: list[Message] = []
    for name in PEOPLE:
        caller = Caller(
            principal=await _principal(name),
            person="staff",
            revision=REVISIONS[version],
            name="Try it",
            capabilities=EVERYTHING,
        )
        console = InProcessClient(process, SLUG, caller, observe=seen.append)
        for row in ROWS:
            what = whole(row, target.named, version)
            if what is None:
                # There are no methods of HTTP here.
                continue
            message = of_era(version, row, what, target.client)["message"]
            line = json.dumps(message).encode()
            await console._connection.take_line(line, time.monotonic())
        console._connection.cancel_subscriptions()
        assert seen
        assert target.untouched(), name
    for secret in target.secrets:
        assert not any(secret.encode() in each.text for each in seen)
    await goes_on(target, stage)
