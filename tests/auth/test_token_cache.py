"""Access tokens: who is let in, how far, and when no more."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

import pytest
from django.contrib.auth import get_user_model
from django.db import OperationalError
from django.utils import timezone

from mcp_app.auth.token_cache import KIND, token_cache
from mcp_app.conf import BY_TOKEN
from mcp_app.invalidation.workers import here
from mcp_app.models import AccessToken, Server
from mcp_app.models.tokens import AccessTokenRows
from mcp_app.pools.database import authenticators, writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import Unavailable
from mcp_app.transports.http.host_and_origin import PARAMETER, _warn_about_token
from tests.asgi_client import Client, Outcome, Visit, outcome, routing_headers
from tests.auth.conftest import Commit
from tests.behaviours import Stage
from tests.published import published
from tests.wire.middleware import WireCheck

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("each_way")]

BY: Final = "/mcp/by-token"
SERVER: Final = {"slug": "by-token", "access": "token"}
NEWEST: Final = "2026-07-28"
VERSIONS: Final = ("2025-11-25", NEWEST)


@pytest.fixture
def mcp() -> dict[str, Any]:
    return {"AUTHENTICATION": BY_TOKEN}


async def admin() -> Any:
    users: Any = get_user_model()._default_manager
    made, _ = await writer.run(lambda: users.get_or_create(username="bert"))
    return made


@dataclass
class Site:
    """The site with its server, and how a user's tokens are made and shown."""

    application: WireCheck
    user: Any

    async def make(self, **changes: Any) -> tuple[AccessToken, str]:
        """Make a token that may all, unless something else is said."""
        columns = {"user": self.user, "name": "a laptop", "may": "change", **changes}
        return await writer.run(partial(AccessToken.objects.make, **columns))

    def bearing(self, token: str, version: str = NEWEST) -> Client:
        headers = {"authorization": f"Bearer {token}"}
        return Client(self.application, version, path=BY, headers=headers)


@pytest.fixture
def site(application: WireCheck, server: Server, user: Any, process: Process) -> Site:
    token_cache.forget_all()
    return Site(application, user)


def refused(found: Outcome, message: str) -> None:
    assert found.status == 401
    assert found.error["message"] == message
    assert found.headers["www-authenticate"] == (
        f'Bearer realm="mcp", error="invalid_token", error_description="{message}"'
    )


# -- who is let in ----------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_token_lets_its_user_in(site: Site, user: Any, version: str) -> None:
    row, token = await site.make()
    client = await site.bearing(token, version).open()
    found = (await client.call("drill_whoami")).result["structuredContent"]
    assert found["user"] == "ana"
    known = await token_cache.find_entry(row.digest)
    assert known is not None
    assert (known.principal.kind, known.principal.client) == (KIND, row.family)


@pytest.mark.parametrize("more", [b"\xa0", b"\x85", b"\x0c", b"\x1f", b" \xa0"])
async def test_a_longer_token_is_another_one(site: Site, more: bytes) -> None:
    """Python's own idea of white space is wider than that of HTTP."""
    _, token = await site.make()
    shown = f"Bearer {token}".encode() + more
    good = site.bearing(f" {token}\t")
    bad = site.bearing(shown.decode("latin-1").removeprefix("Bearer "))
    # The token is known, and so are the headers of a plain call.
    for _ in range(2):
        assert (await good.call("drill_add", a=1, b=2)).text == "3"
        assert (await bad.call("drill_add", a=1, b=2)).status == 401
    assert (await bad.request("tools/list")).status == 401
    old = Client(site.application, path=f"{BY}/sse", headers=bad._headers)
    assert (await outcome(old.visit("GET"))).status == 401


@pytest.mark.parametrize("scheme", ["bearer", "BEARER"])
async def test_the_name_of_the_scheme_has_no_case(site: Site, scheme: str) -> None:
    _, token = await site.make()
    client = site.bearing("")
    header = {"authorization": f"{scheme}  {token} "}
    found = await client.sent(client.message("tools/list"), header)
    assert found.status == 200


@pytest.mark.parametrize(
    "header", ["Basic bWNwXzpx", "Bearer", "Bearer other", "mcp_x", "Bearermcp_x", ""]
)
async def test_what_is_no_token_of_ours_is_passed_by(site: Site, header: str) -> None:
    client = site.bearing("")
    found = await client.sent(client.message("tools/list"), {"authorization": header})
    assert found.status == 401
    assert found.headers["www-authenticate"] == 'Bearer realm="mcp"'


async def test_a_wrong_token(site: Site) -> None:
    _, token = await site.make()
    for wrong in (token[:-1], f"{token}x", token.swapcase(), f"{token} x", "mcp_"):
        found = await site.bearing(wrong).request("tools/list")
        if wrong.startswith("mcp_"):
            refused(found, "There is no such access token.")
        assert found.status == 401


async def test_a_token_is_kept_by_its_digest_alone(site: Site) -> None:
    row, token = await site.make()
    values = await writer.run(AccessToken.objects.values().get, pk=row.pk)
    assert len(token) == 47
    assert token not in str(values)
    assert token.startswith(row.prefix)
    assert len(row.prefix) == 10


# -- and who no more ------------------------------------------------------------------


async def test_a_revoked_token(site: Site, commit: Commit) -> None:
    row, token = await site.make()
    client = site.bearing(token)
    assert (await client.request("tools/list")).status == 200
    await commit(row.revoke)
    refused(await client.request("tools/list"), "This access token was revoked.")


async def test_whoever_revokes_goes_on_when_that_is_true_everywhere(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, _ = await site.make()
    held: list[bool] = []
    # Where nobody has opened a transaction, too.
    monkeypatch.setattr(here, "committed", lambda: held.append(True))
    await authenticators.run(row.revoke)
    assert held == [True]


def _disable_user(row: AccessToken) -> None:
    row.user.is_active = False
    row.user.save()


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (lambda row: row.delete(), "There is no such access token."),
        (
            lambda row: AccessToken.objects.update(revoked=timezone.now()),
            "This access token was revoked.",
        ),
        (_disable_user, "The user of this access token may not log in."),
    ],
)
async def test_other_ends(site: Site, commit: Commit, end: Any, said: str) -> None:
    row, token = await site.make()
    client = site.bearing(token)
    assert (await client.request("tools/list")).status == 200
    await commit(end, row)
    refused(await client.request("tools/list"), said)


async def test_a_token_expires_at_its_stroke(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing tells of it: what is kept has to know."""
    ends = timezone.now() + timedelta(hours=1)
    _, token = await site.make(expires=ends)
    client = site.bearing(token)
    for seconds, status in ((-1, 200), (0, 401)):
        monkeypatch.setattr(timezone, "now", lambda s=seconds: ends + timedelta(0, s))
        assert (await client.request("tools/list")).status == status
    refused(await client.request("tools/list"), "This access token has expired.")


async def test_a_token_is_for_some_servers(
    site: Site, server: Server, commit: Commit
) -> None:
    other = await writer.run(published, Server(slug="other", access="token"))
    row, token = await site.make(servers=[other])
    client = site.bearing(token)
    said = "This access token is not valid for this server."
    refused(await client.request("tools/list"), said)
    await commit(row.servers.add, server)
    assert (await client.request("tools/list")).status == 200
    await commit(row.servers.remove, server)
    refused(await client.request("tools/list"), said)
    await writer.run(other.delete)


async def test_a_token_for_a_lost_server_is_no_good(site: Site, commit: Commit) -> None:
    other = await writer.run(published, Server(slug="other", access="token"))
    row, token = await site.make(servers=[other])
    _, new = await writer.run(row.replace, timedelta(hours=1))
    await commit(other.delete)
    for each in (token, new):
        found = await site.bearing(each).request("tools/list")
        refused(found, "This access token is not valid for this server.")


async def test_a_token_is_for_some_networks(site: Site) -> None:
    _, token = await site.make(networks="192.0.2.0/24")
    found = await site.bearing(token).request("tools/list")
    refused(found, "This access token is not valid from your network address.")
    _, token = await site.make(networks="192.0.2.0/24 127.0.0.1")
    assert (await site.bearing(token).request("tools/list")).status == 200


@pytest.mark.parametrize(
    "mcp", [{"AUTHENTICATION": BY_TOKEN, "TRUSTED_PROXIES": ["127.0.0.1"]}]
)
async def test_the_network_behind_a_proxy(site: Site) -> None:
    _, token = await site.make(networks="2001:db8::/32")
    client = site.bearing(token)
    for address, status in (("2001:db8::7", 200), ("2001:db9::7", 401)):
        headers = {"x-forwarded-for": address}
        found = await client.sent(client.message("tools/list"), headers)
        assert found.status == status


# -- what is open ---------------------------------------------------------------------


async def standing(client: Client) -> Visit:
    if client.revision.sessions:
        return await client.standing()
    notifications = {"resourceSubscriptions": ["test://static-text"]}
    visit = client.begin("subscriptions/listen", {"notifications": notifications})
    await visit.message()
    return visit


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("end", ["revoke", "delete", "user", "expire"])
async def test_what_is_open_ends_with_the_token(
    site: Site,
    stage: Stage,
    user: Any,
    commit: Commit,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    end: str,
) -> None:
    """T34; the streams and calls of others go on."""
    over = timezone.now() + timedelta(hours=1)
    row, token = await site.make(expires=over if end == "expire" else None)
    _, other = await site.make(user=await admin())
    ends, stays = site.bearing(token, version), site.bearing(other)
    for client in (ends, stays):
        await client.open()
    stream, kept = await standing(ends), await standing(stays)
    call = ends.begin("tools/call", {"name": "waits", "arguments": {}})
    await stage.begun()
    if end == "user":
        user.is_active = False
    does = {"revoke": row.revoke, "delete": row.delete, "user": user.save}
    if end in does:
        await commit(does[end])
    else:
        monkeypatch.setattr(timezone, "now", lambda: over)
    for visit in (stream, call):
        await visit.done()
    assert (await ends.request("tools/list")).status == 401
    assert (await stays.request("tools/list")).status == 200
    await kept.quiet()
    assert not kept.ended
    await kept.leave()


async def test_what_is_open_goes_on_with_a_next_one(site: Site, commit: Commit) -> None:
    row, token = await site.make()
    client = site.bearing(token)
    stream = await standing(client)
    _, new = await writer.run(row.replace, timedelta(0))
    await commit(lambda: None)
    assert (await client.request("tools/list")).status == 401
    assert (await site.bearing(new).request("tools/list")).status == 200
    await stream.quiet()
    assert not stream.ended
    await writer.run(lambda: AccessToken.objects.of(new).get().revoke())
    await commit(lambda: None)
    await stream.done()


def _forget(row: AccessToken) -> None:
    row.revoke()
    row.delete()


def _revoke_long_ago(row: AccessToken) -> None:
    row.revoked = timezone.now() - timedelta(hours=1)
    row.save(update_fields=["revoked"])


@pytest.mark.parametrize("end", [_forget, _revoke_long_ago])
async def test_what_is_open_ends_with_its_token_though_the_next_is_good(
    site: Site,
    commit: Commit,
    end: Callable[[AccessToken], None],
) -> None:
    """By no clock: this process may stand still, or that of another host go wrong."""
    row, token = await site.make()
    await writer.run(row.replace, timedelta(hours=1))
    stream = await standing(site.bearing(token))
    await commit(partial(end, row))
    await stream.done()


async def test_a_revoked_token_sends_away_once(site: Site, commit: Commit) -> None:
    """The next token is good, and who has it comes back."""
    row, old = await site.make()
    await (await standing(site.bearing(old))).leave()
    _, new = await writer.run(row.replace, timedelta(hours=1))
    client = site.bearing(new)
    stream = await standing(client)
    await commit(row.revoke)
    await stream.done()
    for _ in range(3):
        again = await standing(client)
        await commit(lambda: None)
        await again.quiet()
        assert not again.ended
        await again.leave()


@pytest.mark.parametrize("method", ["tools/list", "subscriptions/listen"])
async def test_a_slow_body_outlives_no_token(
    site: Site, commit: Commit, method: str
) -> None:
    row, token = await site.make()
    client = site.bearing(token)
    notifications = {"resourceSubscriptions": ["test://static-text"]}
    message = client.message(method, {"notifications": notifications})
    body = json.dumps(message).encode()
    headers = routing_headers(message)
    visit = client.visit("POST", [body[:20]], headers=headers, complete=False)
    while visit.unread:
        await asyncio.sleep(0.001)
    await commit(row.revoke)
    visit.goes_on(body[20:])
    found = await outcome(visit)
    refused(found, "This access token was revoked.")


async def test_an_outage_ends_none(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    row, token = await site.make()
    stream = await standing(site.bearing(token))
    tried = asyncio.Event()

    def away(_: list[str]) -> Any:
        tried.set()
        raise OperationalError("The connection is gone.")

    with monkeypatch.context() as broken:
        broken.setattr("mcp_app.auth.token_cache._families", away)
        await writer.run(row.revoke)
        async with asyncio.timeout(60):
            await tried.wait()
        await stream.quiet()
        assert not stream.ended
    await stream.done()


# -- how far --------------------------------------------------------------------------


async def listed(client: Client) -> set[str]:
    return {x["name"] for x in (await client.request("tools/list")).result["tools"]}


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_token_that_may_read(site: Site, version: str) -> None:
    (_, all_of_it), (_, reading) = await site.make(), await site.make(may="read")
    every = await site.bearing(all_of_it, version).open()
    reader = await site.bearing(reading, version).open()
    # In this order: what everybody sees is kept, and what one sees must not be it.
    assert {"drill_add", "drill_ledger"} <= await listed(every)
    seen = await listed(reader)
    assert "drill_add" in seen
    assert "drill_ledger" in await listed(every)
    known = await reader.call("drill_add", a=1, b=2)
    assert known.result["structuredContent"] == {"result": 3}
    # What may run twice changes something all the same.
    for name in ("drill_ledger", "turns_on"):
        assert name not in seen
        hidden = await reader.call(name)
        assert hidden.status == 403
        assert hidden.error["message"].startswith(f"{name} can change something")
    assert (await every.call("drill_ledger", key="k")).result


async def test_a_token_for_some_tags(site: Site) -> None:
    (_, token), (_, every) = await site.make(tags="shown"), await site.make()
    seen = await listed(site.bearing(token))
    assert seen
    assert seen < await listed(site.bearing(every))
    tagged = Client(site.application, NEWEST, path="/mcp/tagged")
    assert seen == await listed(tagged)


async def test_what_a_token_does_not_reach_is_read_by_nobody(site: Site) -> None:
    (_, token), (_, every) = await site.make(tags="nothing"), await site.make()
    client, other = site.bearing(token), site.bearing(every)
    for method, member in (
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ):
        assert (await other.request(method)).result[member]
        assert (await client.request(method)).result[member] == []
    uri = (await other.request("resources/list")).result["resources"][0]["uri"]
    assert (await other.request("resources/read", {"uri": uri})).result
    found = await client.request("resources/read", {"uri": uri})
    assert found.error["code"] == -32602


# -- what it costs ------------------------------------------------------------------


async def test_a_token_is_read_once(site: Site) -> None:
    _, token = await site.make()
    client = site.bearing(token)
    assert (await client.request("tools/list")).status == 200
    kept = token_cache._entries
    found = next(iter(kept.values()))
    assert (await client.request("tools/list")).status == 200
    assert token_cache._entries is kept
    assert next(iter(kept.values())) is found


async def test_an_unknown_token_is_not_kept(site: Site) -> None:
    await site.bearing("mcp_unknown").request("tools/list")
    assert len(token_cache) == 0


def away(*_: object) -> None:
    raise OperationalError("The connection is gone.")


async def last_use(row: AccessToken) -> Any:
    return await writer.run(lambda: AccessToken.objects.get(pk=row.pk).used)


async def test_the_last_use_comes_behind(site: Site) -> None:
    row, token = await site.make()
    before = timezone.now()
    for _ in range(3):
        await site.bearing(token).request("tools/list")
    assert await last_use(row) is None
    await token_cache.write_uses()
    first = await last_use(row)
    assert before <= first <= timezone.now()
    assert token_cache._used == set()
    # Another one so soon is not worth a write.
    await site.bearing(token).request("tools/list")
    await token_cache.write_uses()
    assert await last_use(row) == first
    earlier = first - timedelta(minutes=2)
    await writer.run(lambda: AccessToken.objects.update(used=earlier))
    await site.bearing(token).request("tools/list")
    await token_cache.write_uses()
    assert await last_use(row) > first


async def test_a_use_written_later(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    row, token = await site.make()
    await site.bearing(token).request("tools/list")
    with monkeypatch.context() as broken:
        broken.setattr(AccessTokenRows, "note_uses", away)
        with pytest.raises(Unavailable):
            await token_cache.write_uses()
    assert await last_use(row) is None
    await token_cache.write_uses()
    assert await last_use(row) is not None


async def test_no_token_is_logged(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    row, token = await site.make()
    caplog.set_level(logging.DEBUG)
    await site.bearing(token).request("tools/list")
    await writer.run(row.revoke)
    await site.bearing(token).request("tools/list")
    await site.bearing(f"{token}x").request("tools/list")
    _warn_about_token.cache_clear()
    client = Client(site.application, NEWEST, path=f"{BY}?{PARAMETER}={token}")
    assert (await client.request("tools/list")).status == 401
    assert "sends its access token in the address" in caplog.text
    assert token not in caplog.text
