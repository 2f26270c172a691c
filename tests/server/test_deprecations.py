"""The people of a site are told once of what a revision deprecates."""

from __future__ import annotations

import pytest

from mcp_app.protocol.revisions import STATEFUL, Revision
from mcp_app.server import questions
from tests.asgi_client import PREFIX, Client


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "_said", set())


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage().split()[5].strip(",")
        for record in caplog.records
        if record.name == "mcp_app.server"
    ]


async def test_it_is_said_once(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    level = {"_meta": {f"{PREFIX}logLevel": "debug"}}
    for _ in range(2):
        for tool, capability in (
            ("samples", "sampling"),
            ("roots", "roots"),
            ("logs_sync", "logging"),
        ):
            await client.request("tools/call", {"name": tool, **level})
            assert capability in warnings(caplog)
    assert sorted(warnings(caplog)) == ["logging", "roots", "sampling"]


async def test_nothing_is_said_of_what_a_client_does_not_want(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    await client.request("tools/call", {"name": "logs_sync"})
    assert warnings(caplog) == []


@pytest.mark.parametrize("revision", STATEFUL.values(), ids=lambda each: each.version)
@pytest.mark.parametrize("capability", ["logging", "roots", "sampling"])
def test_no_older_revision_deprecates_it(
    revision: Revision, capability: str, caplog: pytest.LogCaptureFixture
) -> None:
    questions.note_deprecated_use(revision, capability)
    assert warnings(caplog) == []
