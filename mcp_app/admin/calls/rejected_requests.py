"""Who was refused at the door, and what to do: what processes say with a heartbeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.admin.calls.filters import moment
from mcp_app.admin.page.wording import Said
from mcp_app.audit.turned_away import OTHERS, Reason
from mcp_app.interface.rules import visible
from mcp_app.models import Worker

SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason in words: what the client got, what it means, what to do."""

    label: Said
    status: str
    means: Said
    remedy: Said


_REASONS: Final[Mapping[str, tuple[Said, str, Said, Said]]] = {
    Reason.HOST: (
        gettext_lazy("Wrong host"),
        "421",
        gettext_lazy("The address that the client uses is not one of this site's."),
        gettext_lazy(
            "Add the host name to ALLOWED_HOSTS or MCP[“HOSTS”], or correct the "
            "address in the client. Behind a proxy, let it pass the host on."
        ),
    ),
    Reason.ORIGIN: (
        gettext_lazy("Wrong origin"),
        "403",
        gettext_lazy("A web page of another site has called."),
        gettext_lazy("If that page is yours, add its origin to MCP[“ORIGINS”]."),
    ),
    Reason.NOBODY: (
        gettext_lazy("Not signed in"),
        "401",
        gettext_lazy(
            "The client showed nothing that says who it is. Clients often try once "
            "like this before they sign in."
        ),
        gettext_lazy("If it never comes in, give it an access token."),
    ),
    Reason.CREDENTIALS: (
        gettext_lazy("Not let in"),
        "401",
        gettext_lazy(
            "What the client showed lets nobody in: a token that is wrong, expired, "
            "revoked, for another server or network, or of somebody who is not active."
        ),
        gettext_lazy(
            "Look at the token of this client, and replace it if it has ended."
        ),
    ),
    Reason.SERVER: (
        gettext_lazy("No such server"),
        "404",
        gettext_lazy("There is no server at the address that the client uses."),
        gettext_lazy("Correct the address in the client, or start the server again."),
    ),
    Reason.SESSION: (
        gettext_lazy("No such session"),
        "404",
        gettext_lazy("The session was closed, or is too old, or is somebody else's."),
        gettext_lazy("Nothing: clients open a new one. If one does not, restart it."),
    ),
    Reason.METHOD: (
        gettext_lazy("Wrong method"),
        "405",
        gettext_lazy(
            "The client, or a browser, used a method that has no meaning here."
        ),
        gettext_lazy(
            "Nothing, if it works otherwise: some clients only try. Served by WSGI "
            "there are no streams."
        ),
    ),
    Reason.ACCEPT: (
        gettext_lazy("Takes other answers"),
        "406",
        gettext_lazy("The client does not take both JSON and event streams."),
        gettext_lazy(
            "Let it send Accept: application/json, text/event-stream. Or it is a "
            "program that speaks another protocol."
        ),
    ),
    Reason.CONTENT_TYPE: (
        gettext_lazy("Wrong content type"),
        "415",
        gettext_lazy("What was sent does not say that it is JSON."),
        gettext_lazy("Let the client send Content-Type: application/json."),
    ),
    Reason.SLOW: (
        gettext_lazy("Too slow"),
        "408",
        gettext_lazy("The request did not come in time."),
        gettext_lazy("Look at the network between the client and this site."),
    ),
    Reason.BODY: (
        gettext_lazy("Too large"),
        "413",
        gettext_lazy("The request is larger than it may be."),
        gettext_lazy("Send less, or raise the limit “body”."),
    ),
    Reason.HEADERS_SIZE: (
        gettext_lazy("Headers too large"),
        "431",
        gettext_lazy("The headers are too many, or too large."),
        gettext_lazy("Look which header is so long: often it is a cookie."),
    ),
    Reason.HEADERS: (
        gettext_lazy("Wrong headers"),
        "400",
        gettext_lazy("A header is missing, repeated, or contradicts the request."),
        gettext_lazy("Update the client, or look what a proxy does with headers."),
    ),
    Reason.VERSION: (
        gettext_lazy("Unknown version"),
        "400",
        gettext_lazy("The client speaks a version that this server does not."),
        gettext_lazy("Update the client, or this server."),
    ),
    Reason.JSON: (
        gettext_lazy("No JSON"),
        "400",
        gettext_lazy("The body is not JSON."),
        gettext_lazy("Look which program sends it, and what a proxy does with it."),
    ),
    Reason.MESSAGE: (
        gettext_lazy("Wrong message"),
        "400",
        gettext_lazy("The body is JSON, and no message that is allowed here."),
        gettext_lazy("Update the client, or tell those who make it."),
    ),
    Reason.TOO_MANY: (
        gettext_lazy("Too many"),
        "429",
        gettext_lazy("The client has more open, or running, than it may."),
        gettext_lazy("Wait. If it is right as it is, raise the limit."),
    ),
    Reason.UNAVAILABLE: (
        gettext_lazy("Not available"),
        "503",
        gettext_lazy("A process was stopping, or its database could not be reached."),
        gettext_lazy("Look at the database. At a deployment, a few are usual."),
    ),
    Reason.FAILED: (
        gettext_lazy("Server failed"),
        "500",
        gettext_lazy("A fault of the server."),
        gettext_lazy("Look into the site's log."),
    ),
    Reason.OTHER: (
        gettext_lazy("Refused"),
        "",
        gettext_lazy("Refused for a reason that has no name here."),
        gettext_lazy("Look into the client's log: it was told why."),
    ),
}
REFUSALS: Final = {name: Refusal(*texts) for name, texts in _REASONS.items()}


@dataclass(frozen=True, slots=True)
class Group:
    """Requests of one client that were refused for one reason within an hour."""

    refusal: Refusal
    client: str
    hour: datetime
    count: int


def _client(told: str) -> str:
    return _("others") if told == OTHERS else visible(told) or _("not told")


def turned_away() -> dict[str, object]:
    """Return what processes that live say they have refused; one statement."""
    counts: Counter[tuple[int, str, str]] = Counter()
    rows = list(Worker.objects.live())
    for row in rows:
        for hour_ms, reason, client, count in row.said().refused:
            counts[hour_ms, reason, client] += count
    order = sorted(counts.items(), key=lambda each: (-each[0][0], -each[1], each[0]))
    groups = [
        Group(
            refusal=REFUSALS.get(reason, REFUSALS[Reason.OTHER]),
            client=_client(client),
            hour=moment(hour_ms),
            count=count,
        )
        for (hour_ms, reason, client), count in order
    ]
    since = min((row.started_ms for row in rows), default=None)
    return {
        "groups": groups[:SHOWN],
        "more": len(groups) - SHOWN if len(groups) > SHOWN else 0,
        "since": None if since is None else moment(since),
        "processes": len(rows),
    }
