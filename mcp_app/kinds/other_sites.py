"""The common parts of calls to other sites, for all protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

from django.utils.translation import gettext as _

from mcp_app.catalog.findings import Finding, advice
from mcp_app.catalog.runnable import Gate, Runnable
from mcp_app.conf import KIB, MIB
from mcp_app.egress.resolving import (
    EgressError,
    Forbidden,
    TooLarge,
    TooSlow,
    Unreadable,
)
from mcp_app.egress.sites import Site
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.context import Context
from mcp_app.interface.definitions import Definition
from mcp_app.interface.errors import ExternalError
from mcp_app.interface.principal import AccessRequest

Output = TypeVar("Output")

UNTRUSTED: Final = {"untrusted": True}
"""The `_meta` of results that come from another site."""

IN_THREAD: Final = 64 * KIB
"""Answers of at least this many bytes are read in a thread, not on the loop."""
POSSIBLY: Final = " It may have happened all the same."
"""The sentence about a call that got no answer but may have changed something."""


def site_runnable(
    site: Site, run: Callable[..., object], convert: Callable[[object], Output]
) -> Runnable[Output]:
    """Return a runnable that calls a site; each site has its own limit of calls."""
    return Runnable(
        run=run,
        style="async",
        bind=lambda arguments: {"values": arguments},
        convert=convert,
        context="ctx",
        ours=True,
        gate=Gate(f"site {site.key}", site.connections),
    )


async def access_request_of(
    ctx: Context, site: Site, name: str, values: Mapping[str, object]
) -> AccessRequest:
    """Return the request of a call; it has a user if the site has a key per caller."""
    return AccessRequest(
        principal=ctx.principal,
        server=ctx.server,
        user=await ctx.user() if site.per_caller else None,
        name=name,
        arguments=values,
    )


_FAILURES: Final[Mapping[type[EgressError], tuple[Outcome, str]]] = {
    Forbidden: (Outcome.EGRESS, "This call was refused by this site's rules."),
    TooLarge: (Outcome.TOO_LARGE, "The answer is larger than {most}."),
    Unreadable: (Outcome.SHAPE, "The answer of {title} cannot be read."),
    TooSlow: (Outcome.OTHER_SITE, "{title} took longer than {seconds}."),
    EgressError: (Outcome.OTHER_SITE, "{title} cannot be reached right now."),
}
"""Outcome for the call log, and words for the client, by the first type that fits."""


def site_failure(site: Site, error: EgressError, only_reads: bool) -> ExternalError:
    """Return the error that a client gets if a site gave no answer."""
    error_type = next(each for each in _FAILURES if isinstance(error, each))
    outcome, message = _FAILURES[error_type]
    message = message.format(
        title=site.title,
        most=f"{site.answer / MIB:.3g} MiB",
        seconds=f"{site.timeout:g} s",
    )
    if error.sent and not only_reads:
        message += POSSIBLY
    return ExternalError(message, outcome, error.message)


def shared_key_findings(definition: Definition, site: Site | None) -> Iterator[Finding]:
    """Advise to demand a right if all callers act with the key of this site."""
    if site is None or site.per_caller or definition.demands:
        return
    if site.secret_headers or site.secret_query:
        message = _(
            "Whoever comes in acts at %(site)s with this site's key. Ask for a"
            " permission or a group if not everybody may."
        )
        yield advice("shared-key", "config", message % {"site": site.title})
