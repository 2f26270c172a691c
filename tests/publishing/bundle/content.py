"""What a site has that goes into a bundle."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from mcp_app.catalog.registry import Registry
from mcp_app.models import (
    Blob,
    DefinitionVersion,
    EventType,
    Prompt,
    PublishedRow,
    Resource,
    ResourceTemplate,
    Server,
    Tool,
)
from mcp_app.models.definitions import Source
from mcp_app.protocol import jsonrpc
from mcp_app.publishing import bundle
from tests.published import published

REGISTRY = Registry()
ANSWER = '{"content": [{"type": "text", "text": "Nine to five."}]}'
PICTURE = b"\x89PNG\x00\xff"
MODELS: tuple[type[PublishedRow], ...] = (
    Server,
    Tool,
    Resource,
    ResourceTemplate,
    Prompt,
    EventType,
)


def tool(name: str = "hours", **columns: Any) -> Tool:
    """Save a tool that lint has nothing to say about."""
    defaults: dict[str, Any] = {
        "description": "Tells when the shop is open. Use it when someone asks.",
        "read_only": True,
        "config": ANSWER,
    }
    return Tool.objects.create(name=name, **{**defaults, **columns})


def overlay(name: str = "find", **columns: Any) -> Tool:
    """Save what staff changed about a tool that code declares."""
    return Tool.objects.create(
        name=name, source=Source.CODE, kind="function", **columns
    )


def fill() -> None:
    """Make some of everything, published and not, chosen and uploaded."""
    opening = published(tool(timeout=5.0, title="Öffnungszeiten", tags="shop"))
    opening.description = "Tells when the shop is open: changed since."
    opening.save()
    tool("Hours", description="Never published.", position=3)
    published(overlay("vanished", title="Better"))
    overlay("untouched")
    blob = Blob.objects.keep(PICTURE, "image/png")
    upload = jsonrpc.write({"upload": blob.digest}).decode()
    picture = published(
        Resource(
            name="Logo",
            description="The shop's sign.",
            uri="shop://logo",
            config=upload,
            mime_type="image/png",
            size=len(PICTURE),
        )
    )
    published(
        ResourceTemplate(
            name="Order",
            description="One order.",
            uri_template="shop://orders/{number}",
            mime_type="text/plain",
            config='{"text": "Order {{number}}"}',
            suggestions='{"number": ["1042", "Ü7"]}',
        )
    )
    message = {"role": "user", "content": {"type": "text", "text": "Hi {{who}}"}}
    published(
        Prompt(
            name="greet",
            description="Greets someone.",
            arguments='[{"name": "who", "description": "Whom.",'
            ' "suggestions": ["Ada", "Émile"]}]',
            config=jsonrpc.write({"messages": [message]}).decode(),
        )
    )
    paid = EventType.objects.create(
        name="paid",
        description="An order was paid.",
        kind="change",
        config='{"model": "shop.Order", "on": ["changed"], "fields": ["number"]}',
    )
    server = Server.objects.create(
        slug="shop", title="Shop", selection="chosen", access="public", page_size=7
    )
    server.tools.set([opening, Tool.objects.get(name="Hours")])
    server.resources.set([picture])
    server.events.set([paid])
    Server.objects.publish([server], note="Opened.")


def clear() -> None:
    """Make the tables as they are at another site that has nothing yet.

    Primary keys go on, so that nothing can be found by them.
    """
    for model in MODELS:
        model.rows().update(published=None)
        model.rows().all().delete()
    DefinitionVersion.objects.all().delete()
    Blob.objects.all().delete()


def exported() -> dict[str, Any]:
    """Return a bundle of everything as JSON, for a test to change."""
    file: dict[str, Any] = json.loads(bundle.export_bundle(bundle.everything()))
    return file


def as_bytes(file: object) -> bytes:
    return json.dumps(file).encode()


def imported(
    body: bytes,
    *,
    publish: bool = False,
    working: bool = False,
    registry: Registry = REGISTRY,
) -> list[bundle.ImportedRow]:
    read = replace(bundle.read_bundle(body), publishes_working=working)
    looked_at = bundle.compare_bundle(read, registry).looked_at
    return bundle.import_bundle(
        read, registry, author=None, looked_at=looked_at, publish=publish
    )


def entry(file: dict[str, Any], kind: str, key: str) -> dict[str, Any]:
    [found] = [each for each in file[kind] if next(iter(each.values())) == key]
    assert isinstance(found, dict)
    return found
