"""Access tokens in the hands of the Python clients: the SDK's and FastMCP's.

Of an answer that is no success the SDK shows the error in the body only where that has
an `id`, which the error has not that came before the request was read: so all it says
is that there was an error.  Whoever looks at its HTTP client finds the challenge.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import fastmcp
import httpx2
import pytest
from fastmcp.client.transports import StreamableHttpTransport
from mcp import Client, MCPError
from mcp.client.auth import OAuthClientProvider, OAuthRegistrationError
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ToolsListChanged
from mcp.shared.auth import OAuthClientMetadata
from pydantic import AnyUrl

from tests.clients.facts import STATEFUL, STATELESS
from tests.clients.guarded import (
    A_MINUTE,
    CANCELLED,
    SAID,
    SELDOM,
    UNAUTHORIZED,
    Guarded,
    bearer,
    challenge,
)
from tests.clients.person import PATIENCE_S, eventually
from tests.clients.test_sign_in import Storage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore::mcp.shared.exceptions.MCPDeprecationWarning",
        "ignore:Using in-memory token storage:UserWarning",
    ),
    pytest.mark.xdist_group("access tokens"),
]

MODES: Final = {STATEFUL: "legacy", STATELESS: "auto"}
NO_OAUTH: Final = "Registration failed: 404"
CONNECTION_CLOSED: Final = -32000
ADD: Final = {"a": 20, "b": 22}

Connection: TypeAlias = Any
"""A client of either kind; what is used here both have."""
Connect: TypeAlias = Callable[[str], AbstractAsyncContextManager[Connection]]


@dataclass
class Traffic:
    """What the HTTP client of a client was answered: method, status and challenge."""

    seen: list[tuple[str, int, str | None]] = field(default_factory=list)

    async def note(self, answer: httpx2.Response) -> None:
        asked, told = answer.request, answer.headers.get("www-authenticate")
        self.seen.append((asked.method, answer.status_code, told))

    def client(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
        **options: Any,
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers=headers,
            timeout=timeout or httpx2.Timeout(PATIENCE_S),
            auth=auth,
            event_hooks={"response": [self.note]},
            **options,
        )

    def refusals(self, method: str = "POST") -> set[str | None]:
        return {
            told
            for asked, status, told in self.seen
            if (asked, status) == (method, UNAUTHORIZED)
        }


@pytest.fixture
def traffic() -> Traffic:
    return Traffic()


@pytest.fixture(params=["SDK", "FastMCP"])
def connect(
    request: pytest.FixtureRequest, guarded: Guarded, era: str, traffic: Traffic
) -> Connect:
    @asynccontextmanager
    async def by_sdk(token: str) -> AsyncIterator[Connection]:
        async with traffic.client(headers=bearer(token)) as http:
            transport = streamable_http_client(guarded.url, http_client=http)
            async with Client(transport, mode=MODES[era]) as client:
                yield client

    @asynccontextmanager
    async def by_fastmcp(token: str) -> AsyncIterator[Connection]:
        transport = StreamableHttpTransport(
            guarded.url, auth=token or None, httpx_client_factory=traffic.client
        )
        async with fastmcp.Client(transport, mode=MODES[era]) as client:
            yield client

    return {"SDK": by_sdk, "FastMCP": by_fastmcp}[request.param]


def told(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from told(each)
    else:
        yield error


async def raised(connection: AbstractAsyncContextManager[Connection]) -> BaseException:
    """Return the one error with which a client does not get in, in good time."""
    with pytest.raises((Exception, ExceptionGroup)) as refused:
        async with asyncio.timeout(PATIENCE_S), connection:
            pass
    [error] = told(refused.value)
    return error


async def test_a_good_token_lists_and_calls(
    connect: Connect, guarded: Guarded, traffic: Traffic
) -> None:
    async with connect(guarded.token()) as client:
        listed = await client.list_tools()
        result = await client.call_tool("drill_add", ADD)
    assert len(getattr(listed, "tools", listed)) > 1
    assert result.structured_content == {"result": 42}
    assert traffic.refusals() == set()


@pytest.mark.parametrize("connect", ["SDK"], indirect=True)
async def test_t20_a_model_reads_how_long_to_wait(
    connect: Connect, guarded: Guarded
) -> None:
    """And after that time it is answered."""
    async with connect(guarded.token()) as client:
        results = [await client.call_tool(SELDOM) for _ in range(A_MINUTE + 1)]
        [block] = results[-1].content
        wait = re.search(
            r"You call seldom too often: .* Wait (\d) seconds?\.", block.text
        )
        assert results[-1].is_error
        assert wait is not None
        await asyncio.sleep(int(wait[1]))
        assert not (await client.call_tool(SELDOM)).is_error


@pytest.mark.parametrize("shown", SAID)
async def test_who_is_refused_is_told_why(
    connect: Connect, guarded: Guarded, traffic: Traffic, shown: str
) -> None:
    error = await raised(connect(guarded.refused[shown]))
    assert isinstance(error, MCPError)
    assert str(error) == SAID[shown]
    assert traffic.refusals() == {challenge(shown)}
    assert {status for _, status, _ in traffic.seen} == {UNAUTHORIZED}


async def test_a_token_that_is_revoked_meanwhile(
    connect: Connect, guarded: Guarded, traffic: Traffic, era: str
) -> None:
    """What runs ends with an answer, streams end, and the next call is refused."""
    token = guarded.token()
    async with connect(token) as client, AsyncExitStack() as stack:
        running = asyncio.create_task(client.call_tool("drill_sleep", {"seconds": 600}))
        listening = None
        if era == STATELESS and hasattr(client, "listen"):
            listening = await stack.enter_async_context(
                client.listen(tools_list_changed=True)
            )
        if era == STATEFUL:
            await eventually(lambda: ("GET", 200, None) in traffic.seen)
        await eventually(lambda: len(traffic.seen) >= 2)
        await asyncio.to_thread(guarded.operator.revokes, token)
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(MCPError, match=CANCELLED):
                await running
            with pytest.raises(MCPError, match=SAID["revoked"]):
                await client.call_tool("drill_add", ADD)
            if listening is not None:
                # With the token its lists change, too: it may hear of that before.
                rest = {type(each) async for each in listening}
                assert rest <= {ToolsListChanged}
        if era == STATEFUL:
            # Its standing stream has ended: it asks for another one.
            await eventually(lambda: bool(traffic.refusals("GET")))
    assert traffic.refusals() == {challenge("revoked")}


async def _sent_to(address: str) -> None:
    raise AssertionError(f"The person was sent to {address}.")


async def test_who_looks_for_oauth_finds_none(guarded: Guarded) -> None:
    where = OAuthClientMetadata(redirect_uris=[AnyUrl("http://127.0.0.1:1/back")])
    storage, traffic = Storage(), Traffic()
    auth = OAuthClientProvider(guarded.url, where, storage, _sent_to)

    @asynccontextmanager
    async def connected() -> AsyncIterator[Connection]:
        async with traffic.client(auth=auth) as http:
            transport = streamable_http_client(guarded.url, http_client=http)
            async with Client(transport) as client:
                yield client

    error = await raised(connected())
    assert isinstance(error, OAuthRegistrationError)
    assert str(error).startswith(NO_OAUTH)
    assert storage == Storage()


async def test_fastmcp_looks_for_oauth_and_finds_none(guarded: Guarded) -> None:
    error = await raised(fastmcp.Client(guarded.url, auth="oauth"))
    assert isinstance(error, RuntimeError)
    assert NO_OAUTH in str(error)


def on_sse(guarded: Guarded, token: str) -> Client:
    transport = sse_client(f"{guarded.url}/sse", headers=bearer(token))
    return Client(transport, mode="legacy", read_timeout_seconds=PATIENCE_S)


@pytest.mark.parametrize("shown", SAID)
async def test_who_is_refused_on_sse_is_told_why(guarded: Guarded, shown: str) -> None:
    error = await raised(on_sse(guarded, guarded.refused[shown]))
    assert isinstance(error, httpx2.HTTPStatusError)
    assert error.response.status_code == UNAUTHORIZED
    assert error.response.headers["www-authenticate"] == challenge(shown)


async def test_a_token_on_sse_that_is_revoked_meanwhile(guarded: Guarded) -> None:
    """The stream ends, and with it all that waits for an answer there."""
    token = guarded.token()
    async with on_sse(guarded, token) as client:
        assert (await client.list_tools()).tools
        running = asyncio.create_task(client.call_tool("drill_sleep", {"seconds": 600}))
        await asyncio.to_thread(guarded.operator.revokes, token)
        for call in (running, client.call_tool("drill_add", ADD)):
            with pytest.raises(MCPError) as ended:
                await call
            assert ended.value.code == CONNECTION_CLOSED
