"""Cards and the catalog on the wire: what strangers may read, and what they may not."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import jsonschema_rs
import pytest
from django.test import Client as Browser
from hypothesis import given
from hypothesis import strategies as st

from mcp_app.interface.server import ServerDefinition
from mcp_app.models import Server
from mcp_app.pools.database import lookups, reader, writer
from mcp_app.process.background import background
from mcp_app.process.runtime import Process
from mcp_app.protocol.cards import publisher_of, server_card
from tests.asgi_client import PREFIX, Client, Visit
from tests.process.outages import away
from tests.statements import counted
from tests.wire.middleware import WireCheck
from tests.wire.validation import EXTENSIONS

SCHEMA: Final = json.loads((EXTENSIONS / "server-card.json").read_text())
VALIDATOR: Final = jsonschema_rs.validator_for(SCHEMA, validate_formats=True)
TEXT: Final = st.text(st.characters(codec="utf-8"), max_size=255)
SERVERS: Final = st.builds(
    ServerDefinition,
    slug=st.from_regex(r"[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?", fullmatch=True),
    title=TEXT | st.sampled_from([" ", "\x1b[31m", "word " * 51, "x" * 255]),
    description=TEXT | st.sampled_from(["\n\n", "first\n" * 10, "x" * 101]),
)
WAYS: Final = "mcp_app.authentication"
LONG: Final = f"{'a' * 63}.{'b' * 68}.de"
SITE: Final = "https://Shop.example.com:8443"
CATALOG: Final = "/.well-known/ai-catalog.json"
TAGGED, GUARDED = "/mcp/tagged/server-card", "/mcp/guarded/server-card"


@given(server=SERVERS, needs_token=st.sampled_from([None, True, False]))
def test_cards_are_valid(server: ServerDefinition, needs_token: bool | None) -> None:
    slug, about = server.slug, server.implementation()
    card = server_card("a.example", slug, "https://a/mcp", about, needs_token)
    assert [each.message for each in VALIDATOR.iter_errors(card)] == []


def test_a_description_is_one_short_line() -> None:
    for text, line in (("\n\t", "shop"), ("ab\n" * 40, "ab " * 32 + "ab…")):
        about = {"version": "1", "description": text}
        assert server_card("a.b", "shop", "", about, None)["description"] == line


def test_the_domain_of_a_site() -> None:
    for host in ("xn--bcher-kva.example", "localhost", "1.example.0a", LONG):
        assert publisher_of(f"https://{host}:8443/mcp") == host
    ips = ["127.0.0.1:80", "127.1", "2130706433", "0x7f000001", "[::1]:80"]
    for host in (*ips, "a_b.example", "bücher.example", "", ".", "a..b", f"a{LONG}"):
        assert publisher_of(f"https://{host}") is None, host


@pytest.fixture
def mcp() -> dict[str, Any]:
    ways = {"oauth": f"{WAYS}.oauth", "token": f"{WAYS}.access_token"}
    # With other keys a process loads its catalogs with its first request.
    keys = {"STATE_KEYS": ["k" * 32], "HOSTS": ["localhost"]}
    return {"PUBLIC_URL": SITE, "AUTHENTICATION": ways, **keys}


async def ask(
    application: WireCheck, path: str, method: str = "GET", held: str = ""
) -> Visit:
    # Django itself looks at the Host that a view is asked by.
    host = "localhost" if path == CATALOG else "anything.example"
    headers = {"host": host, "origin": "https://evil.example", "if-none-match": held}
    visit = Visit(application, method, path, headers.items())
    await visit.body()
    assert visit.headers["access-control-allow-origin"] == "*"
    return visit


async def write(process: Process, slug: str, **columns: Any) -> None:
    await writer.run(lambda: Server.objects.filter(slug=slug).update(**columns))
    await process.gate.wait_for_check()


async def test_the_first_request_of_a_process(application: WireCheck) -> None:
    visit = await ask(application, TAGGED)
    card = json.loads(visit.raw)
    assert VALIDATOR.is_valid(card)
    assert visit.headers["content-type"] == "application/mcp-server-card+json"
    client = await Client(application, path="/mcp/tagged").open()
    result = (await client.request("server/discover")).result
    about = result["_meta"][f"{PREFIX}serverInfo"] | {"name": "com.example.shop/tagged"}
    assert about == {name: card[name] for name in about}
    [remote] = card["remotes"]
    assert remote.pop("supportedProtocolVersions") == result["supportedVersions"][:-1]
    assert remote == {"type": "streamable-http", "url": f"{SITE}/mcp/tagged"}
    # Instructions, tools, tags.
    assert not any(each in visit.raw for each in (b"Ask for", b"drill_", b"shown"))


async def test_a_tick_shows_a_server_and_an_untick_hides_it(
    application: WireCheck, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_loop", process.loop)
    for access, needed in (("token", b"true"), ("oauth token", b"false")):
        await write(process, "guarded", listed=True, access=access)
        card = await ask(application, GUARDED)
        assert b'"isRequired":' + needed in card.raw
        assert b"guards" not in card.raw
    catalog = await ask(application, CATALOG)
    assert catalog.headers["content-type"] == "application/ai-catalog+json"
    name, url = "urn:air:shop.example.com:mcp:guarded", f"{SITE}{GUARDED}"
    entry = {"identifier": name, "type": card.headers["content-type"], "url": url}
    assert json.loads(catalog.raw) == {"specVersion": "1.0", "entries": [entry]}
    for path, visit in ((GUARDED, card), (CATALOG, catalog)):
        by_wsgi = await asyncio.to_thread(Browser().get, path)
        assert (by_wsgi.content, by_wsgi["etag"]) == (visit.raw, visit.headers["etag"])
    # Public by its box, it still demands a group.
    await write(process, "guarded", listed=False, access="public")
    assert (await ask(application, GUARDED)).status == 404
    assert json.loads((await ask(application, CATALOG)).raw)["entries"] == []


async def test_all_servers_without_a_card_are_alike(
    application: WireCheck, process: Process
) -> None:
    await writer.run(lambda: Server.objects.create(slug="draft", listed=True))
    await write(process, "off", listed=True)
    slugs = ("private", "guarded", "closed", "off", "draft", "nobody")
    async with counted((reader, lookups)) as statements:
        answers = [await ask(application, f"/mcp/{each}/server-card") for each in slugs]
    assert statements == []
    alike = {(each.status, each.raw, str(each.headers)) for each in answers}
    assert [status for status, *_ in alike] == [404]
    await writer.run(lambda: Server.objects.filter(slug="draft").delete())


@pytest.mark.parametrize("path", [TAGGED, CATALOG])
async def test_methods_and_etags(
    application: WireCheck, process: Process, path: str
) -> None:
    whole, head = [await ask(application, path, each) for each in ("GET", "HEAD")]
    assert (head.status, head.raw, head.headers) == (200, b"", whole.headers)
    assert whole.headers["cache-control"] == "public, max-age=300"
    for method, status in (("OPTIONS", 204), ("POST", 405), ("DELETE", 405)):
        visit = await ask(application, path, method)
        assert (visit.status, visit.headers["allow"]) == (status, "GET, HEAD, OPTIONS")
    tag = whole.headers["etag"]
    for held in ("*", tag, f"W/{tag}", f'"a", W/"b", {tag}'):
        visit = await ask(application, path, held=held)
        assert (visit.status, visit.raw, visit.headers["etag"]) == (304, b"", tag)
    for held in (tag[:-2], '"a", "b"'):
        assert (await ask(application, path, held=held)).raw == whole.raw
    process.gate.mark_stale()
    with away():
        assert (await ask(application, path)).status == 503


@pytest.mark.parametrize("mcp", [{}, {"PUBLIC_URL": "https://127.0.0.1"}])
async def test_a_site_without_a_domain(application: WireCheck) -> None:
    for path in (TAGGED, CATALOG):
        assert (await ask(application, path)).status == 404
