"""Who may use a server, and whether one more of its requests may run now."""

from __future__ import annotations

from collections.abc import Callable, Container
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from mcp_app.catalog.snapshot import Catalog
from mcp_app.interface.principal import Principal, Rights
from mcp_app.server.conversation import check_request_id
from mcp_app.server.request import Request
from mcp_app.server.run import Run

if TYPE_CHECKING:
    from mcp_app.process.runtime import Process


class Reason(Enum):
    """Why a caller may not use a server."""

    NO_SERVER = "there is no such server"
    NOT_SIGNED_IN = "the server is not for callers without a user"
    USER_GONE = "the user is no longer active"
    RIGHTS_LACK = "the user lacks the rights that the server requires"


class NoAccess(Exception):
    """A caller may not use a server; each transport has its own message for this."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class Caller(NamedTuple):
    """A principal at a server, with the server's catalog and the principal's rights."""

    catalog: Catalog
    principal: Principal
    rights: Rights


async def find_caller(
    process: Process,
    slug: str,
    principal: Principal,
    find_catalog: Callable[[str], Catalog | None] | None = None,
) -> Caller:
    """Return a caller with its current rights; raise `NoAccess`, 503 if stopped.

    `find_catalog` is called instead of the method of the process's catalogs.
    """
    find = find_catalog or process.catalogs.find_catalog
    catalog = find(slug)
    if catalog is None:
        raise NoAccess(Reason.NO_SERVER)
    if principal.anonymous and not catalog.public:
        raise NoAccess(Reason.NOT_SIGNED_IN)
    rights = await process.rights.find(principal, slug, catalog.demands)
    # While the rights were read, something may have been published or stopped.
    catalog = find(slug) or catalog
    if rights.gone:
        raise NoAccess(Reason.USER_GONE)
    check_rights(catalog, rights)
    return Caller(catalog, principal, rights)


def check_rights(catalog: Catalog, rights: Rights) -> None:
    """Raise `NoAccess` if a server demands more rights than these."""
    if not rights.meets_demands(catalog.server.demands):
        raise NoAccess(Reason.RIGHTS_LACK)


def admit(
    process: Process, request: Request, running: Container[str | int] = ()
) -> Run:
    """Return the run of a request that may begin now.

    `running` has the ids of the client's running requests.  Raises 400 if the id is
    among them, 503 if the process stops, and 429 if too many calls of the caller run.
    """
    check_request_id(request.id, running)
    process.refuse_if_stopping()
    process.check_share(request.principal, request.person, 1)
    return Run(request)
