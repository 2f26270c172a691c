"""A request as it came: what is asked, by whom, and over which transport.

Nobody writes to a request: the type checker refuses it.  Its `Run` has the state while
it is served.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, dataclass_transform

from mcp_app.interface.context import LEVELS, Client
from mcp_app.interface.definitions import Definition
from mcp_app.interface.principal import AccessRequest, Principal, Rights
from mcp_app.pools.turns import GUESS, Owner
from mcp_app.protocol import results
from mcp_app.protocol.errors import InvalidRequest
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.negotiation import CLIENT_CAPABILITIES, CLIENT_INFO
from mcp_app.protocol.revisions import Revision
from mcp_app.protocol.tasks import declares_tasks

if TYPE_CHECKING:
    from mcp_app.catalog.snapshot import Catalog
    from mcp_app.protocol.headers import Headers
    from mcp_app.server.ports import Adapters, TaskRun
    from mcp_app.streams.open_session import OpenSession

Made = TypeVar("Made")

UNKNOWN_ADDRESS: Final = "@"
"""The key of the rate of all callers without a known address (`CallerAddresses`)."""
IS_DRAWN: Final = "mcp_app.is_drawn"
"""The key in a connection's scope for whether a draw chose to record its request."""
SEVERITY: Mapping[str, int] = {level: index for index, level in enumerate(LEVELS)}


@dataclass_transform(frozen_default=True, eq_default=False)
def _read_only(made: type[Made]) -> type[Made]:
    """Make a dataclass that the type checker lets nobody write.

    With `frozen=True`, or as a `NamedTuple`, a call takes 6 % or 3 % longer.
    """
    return dataclass(slots=True, eq=False)(made)


@_read_only
class Request:
    """A request that `server.dispatch` answers; `with_changes` makes a changed copy.

    `session` is None in the stateless era and for `initialize`; `headers` is None
    if the transport has none.
    """

    adapters: Adapters
    catalog: Catalog
    principal: Principal
    rights: Rights
    revision: Revision
    id: str | int
    method: str
    params: JsonObject
    meta: JsonObject
    session: OpenSession | None = None
    headers: Headers | None = None
    path: str = ""
    person: str = ""
    """The key of the caller for rates and questions; "" without one, as on stdio."""
    connection: str | None = None
    """Names the connection of the request; None if its transport has only one."""
    streams: bool = True
    """Whether the transport can keep streams open, for this or another request."""
    is_large: bool = False
    """Whether the arguments are many: threads then check and write them."""
    mirrors_headers: bool = True
    """False if `call_tool` named the tool: headers then mirror no parameter of it."""
    is_drawn: bool | None = None
    """Whether a draw chose to record the request; None before a draw."""
    task: TaskRun | None = None
    """The run of a task that this call is; None for the call of a client."""

    def with_changes(self, **members: Any) -> Request:
        """Return a copy in which these members have other values."""
        return replace(self, **members)

    @property
    def client(self) -> Client:
        """The client as it describes itself."""
        return self.session.client if self.session else client_of(self.meta)

    @property
    def own_session(self) -> OpenSession:
        """The session, for the methods that only the stateful era has."""
        if self.session is None:
            raise InvalidRequest(f"{self.method} needs a session: initialize first.")
        return self.session

    @property
    def owner(self) -> Owner:
        """The caller, for work that is done in turns."""
        return Owner(self.person, self.principal.anonymous)

    @property
    def turn(self) -> str:
        """The key of the caller for turns of threads and places; "" for none.

        Callers without a known address are told apart by session, proxied address
        or connection.  One caller can have many of these: they count for turns only.
        """
        if self.person or self.connection is None:
            return self.person
        if self.session is not None:
            return f"{GUESS}session:{self.session.digest}"
        # The nearest proxy has added the last hop.
        hops = self.headers.get(b"x-forwarded-for") if self.headers is not None else ""
        hop = (hops or "").rpartition(",")[2].strip()
        return f"{GUESS}{hop[:64] or self.connection}"

    @property
    def payer(self) -> str:
        """The key of the rates that are charged for a call, "" for none."""
        return self.person or ("" if self.headers is None else UNKNOWN_ADDRESS)

    @property
    def host(self) -> str:
        """The host that the client named, "" if its transport has none."""
        return (self.headers.get(b"host") or "") if self.headers is not None else ""

    def sees(self, definition: Definition) -> bool:
        """Whether a definition exists for the principal."""
        return is_visible(definition, self.principal, self.rights)

    def lacks_scope(self, definition: Definition) -> bool:
        """Whether a definition is hidden only because the token may change nothing."""
        scope = self.principal.scope
        hidden = scope is not None and scope.lacks_change(definition)
        return hidden and self.rights.meets_demands(definition.demands)

    @property
    def takes_tasks(self) -> bool:
        """Whether the client of a call wants, or takes, a task as the answer."""
        revision = self.revision
        if revision.task_extension:
            return declares_tasks(self.client.capabilities)
        # A server that has not declared tasks ignores the wish for one.
        has_tasks = revision.task_requests and self.catalog.has_tasks
        return has_tasks and self.params.get("task") is not None

    def complete_result(
        self, result: JsonObject, hint: results.CacheHint | None = None
    ) -> JsonObject:
        """Add what the revision needs in every result, in place; return the result."""
        info = self.catalog.server_info(self.revision)
        return results.complete_result(result, self.revision, info, hint)

    async def allows_arguments(
        self, definition: Definition, arguments: Mapping[str, object]
    ) -> bool:
        """Whether the principal may use a definition with these arguments."""
        rules = (*self.catalog.server.demands.rules, *definition.demands.rules)
        if not rules:
            return True
        request = AccessRequest(
            principal=self.principal,
            server=self.catalog.server.slug,
            name=definition.name,
            arguments=arguments,
        )
        return await self.adapters.rights.allows_call(rules, request)


def is_visible(definition: Definition, principal: Principal, rights: Rights) -> bool:
    """Whether a definition exists for a principal with these rights."""
    scope = principal.scope
    if scope is not None and not scope.includes(definition):
        return False
    return rights.meets_demands(definition.demands)


def client_of(meta: JsonObject) -> Client:
    """Return the client that the `_meta` of a stateless request describes."""
    return described_client(meta.get(CLIENT_INFO), meta.get(CLIENT_CAPABILITIES))


def described_client(info: object, capabilities: object) -> Client:
    """Return a client from its `Implementation` and `ClientCapabilities`."""
    members = info if isinstance(info, dict) else {}
    return Client(
        name=str(members.get("name", "")),
        version=str(members.get("version", "")),
        title=str(members.get("title", "")),
        capabilities=capabilities if isinstance(capabilities, dict) else {},
    )
