"""While a large document is read for the admin, clients are answered."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import AsyncClient
from django.urls import reverse
from pytest_django import DjangoDbBlocker

from mcp_app.conf import MIB
from mcp_app.models import OpenApiDocument
from mcp_app.pools.database import writer
from mcp_app.publishing import openapi
from tests.kinds.openapi.large import OPERATIONS, large_document
from tests.scripting import STATELESS
from tests.serving import Connect

pytestmark = [pytest.mark.usefixtures("served_rows")]

CALLS: Final = 3


def _erase() -> None:
    OpenApiDocument.objects.all().delete()
    User.objects.filter(username="reads").delete()


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Return what is set as soon as a document is read."""
    begun, store = threading.Event(), openapi.store

    def storing(*positional: Any, **named: Any) -> OpenApiDocument:
        begun.set()
        return store(*positional, **named)

    monkeypatch.setattr(openapi, "store", storing)
    return begun


@pytest.mark.parametrize(
    "mcp", [{"HTTP": {"helpdesk": {"url": "https://help.example.com"}}}]
)
async def test_calls_are_answered_while_a_document_is_read(
    connect: Connect, begun: threading.Event, django_db_blocker: DjangoDbBlocker
) -> None:
    with django_db_blocker.unblock():
        browser, client = AsyncClient(), await connect(STATELESS)
        user = await writer.run(lambda: User.objects.create_superuser("reads"))
        try:
            await browser.aforce_login(user)
            file = SimpleUploadedFile("openapi.json", large_document(4 * MIB))
            sent = {"site": "helpdesk", "file": file}
            url = reverse("admin:mcp_app_tool_openapi")
            reading = asyncio.create_task(browser.post(url, sent))
            await asyncio.to_thread(begun.wait, 60)
            for _ in range(CALLS):
                outcome = await client.call("drill_echo", value="a")
                assert not outcome.result.get("isError")
            assert not reading.done()
            assert (await reading).status_code == 302
            rows = await writer.run(lambda: [*OpenApiDocument.objects.all()])
            assert [each.operations for each in rows] == [OPERATIONS]
        finally:
            await writer.run(_erase)
