"""Which requests were refused before they became a call: from workers' heartbeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.admin.calls.filters import stored_time
from mcp_app.audit.call_log import OTHERS, Reason
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible
from mcp_app.models import Worker

MAX_GROUPS: Final = 200


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason in words: the HTTP status, what it means, and what to do."""

    label: Label
    status: str
    means: Label
    remedy: Label


_REASONS: Final[Mapping[str, tuple[Label, str, Label, Label]]] = {
    Reason.HOST: (
        gettext_lazy("Wrong host"),
        "421",
        gettext_lazy("The address that the client uses does not belong to this site."),
        gettext_lazy(
            'Add the host name to ALLOWED_HOSTS or MCP["HOSTS"], or correct the'
            " address in the client. If there is a proxy, it must pass on the host."
        ),
    ),
    Reason.ORIGIN: (
        gettext_lazy("Wrong origin"),
        "403",
        gettext_lazy("A web page of another site sent the request."),
        gettext_lazy("If that page is yours, add its origin to MCP[“ORIGINS”]."),
    ),
    Reason.NOBODY: (
        gettext_lazy("Not signed in"),
        "401",
        gettext_lazy(
            "The client sent no credentials. Clients often try once like this before"
            " they sign in."
        ),
        gettext_lazy("If the client never signs in, give it an access token."),
    ),
    Reason.CREDENTIALS: (
        gettext_lazy("Not let in"),
        "401",
        gettext_lazy(
            "The client's credentials are not accepted: its token is wrong, expired,"
            " revoked, for another server or network, or its user is not active."
        ),
        gettext_lazy("Check the token of this client, and replace it if it has ended."),
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
        gettext_lazy(
            "Nothing: clients open a new session. If a client does not, restart it."
        ),
    ),
    Reason.METHOD: (
        gettext_lazy("Wrong method"),
        "405",
        gettext_lazy(
            "The client, or a browser, used an HTTP method that is not supported here."
        ),
        gettext_lazy(
            "Nothing, if the client works apart from this: some clients"
            " only try whether they get a stream. Under WSGI there are no"
            " streams."
        ),
    ),
    Reason.ACCEPT: (
        gettext_lazy("Accepts other answers"),
        "406",
        gettext_lazy(
            "The client must accept both JSON and event streams, and does not."
        ),
        gettext_lazy(
            "Configure the client to send the header Accept: application/json,"
            " text/event-stream. If it cannot, perhaps it is not an MCP client."
        ),
    ),
    Reason.CONTENT_TYPE: (
        gettext_lazy("Wrong content type"),
        "415",
        gettext_lazy("The request does not say that its body is JSON."),
        gettext_lazy("Configure the client to send Content-Type: application/json."),
    ),
    Reason.SLOW: (
        gettext_lazy("Too slow"),
        "408",
        gettext_lazy("The request did not arrive in time."),
        gettext_lazy("Check the network between the client and this site."),
    ),
    Reason.BODY: (
        gettext_lazy("Too large"),
        "413",
        gettext_lazy("The request is larger than the limit."),
        gettext_lazy("Send less, or raise the limit “body”."),
    ),
    Reason.HEADERS_SIZE: (
        gettext_lazy("Headers too large"),
        "431",
        gettext_lazy("There are too many headers, or they are too large."),
        gettext_lazy("Find out which header is so long. Often it is a cookie."),
    ),
    Reason.HEADERS: (
        gettext_lazy("Wrong headers"),
        "400",
        gettext_lazy("A header is missing, is repeated, or contradicts the request."),
        gettext_lazy("Update the client, or check whether a proxy changes headers."),
    ),
    Reason.VERSION: (
        gettext_lazy("Unknown version"),
        "400",
        gettext_lazy(
            "The client uses a protocol version that this server does not support."
        ),
        gettext_lazy("Update the client, or this server."),
    ),
    Reason.JSON: (
        gettext_lazy("No JSON"),
        "400",
        gettext_lazy("The body is not JSON."),
        gettext_lazy(
            "Find out which program sends such bodies, and whether a proxy"
            " changes them."
        ),
    ),
    Reason.MESSAGE: (
        gettext_lazy("Wrong message"),
        "400",
        gettext_lazy(
            "The body is JSON, but not a message, or not a method, that is allowed"
            " here."
        ),
        gettext_lazy("Update the client, or tell those who make it."),
    ),
    Reason.TOO_MANY: (
        gettext_lazy("Too many"),
        "429",
        gettext_lazy(
            "The client has reached a limit: of messages a minute, of open streams or"
            " of running calls."
        ),
        gettext_lazy(
            "Wait. If the client really needs more, raise the limit: “request_rate” and"
            " “request_burst” are those of messages."
        ),
    ),
    Reason.UNAVAILABLE: (
        gettext_lazy("Not available"),
        "503",
        gettext_lazy("A process was stopping, or its database could not be reached."),
        gettext_lazy(
            "Check the database. During a deployment, a few such refusals are normal."
        ),
    ),
    Reason.FAILED: (
        gettext_lazy("Server failed"),
        "500",
        gettext_lazy("A fault in the server."),
        gettext_lazy("Look into the site's log."),
    ),
    Reason.OTHER: (
        gettext_lazy("Refused"),
        "",
        gettext_lazy("Refused for a reason that this page does not know."),
        gettext_lazy(
            "Look into the client's log: the answer to the client had the reason."
        ),
    ),
}
REFUSALS: Final = {name: Refusal(*texts) for name, texts in _REASONS.items()}


@dataclass(frozen=True, slots=True)
class Group:
    """Requests of one client that were refused for one reason in one hour."""

    refusal: Refusal
    client: str
    hour: datetime
    count: int


def _client_label(reported: str) -> str:
    return _("others") if reported == OTHERS else visible(reported) or _("unknown")


def turned_away() -> dict[str, object]:
    """Return the refusals that live workers have reported; one query."""
    counts: Counter[tuple[int, str, str]] = Counter()
    rows = list(Worker.objects.live())
    for row in rows:
        for hour_ms, reason, client, count in row.report_of_process().refused:
            counts[hour_ms, reason, client] += count
    order = sorted(counts.items(), key=lambda each: (-each[0][0], -each[1], each[0]))
    groups = [
        Group(
            refusal=REFUSALS.get(reason, REFUSALS[Reason.OTHER]),
            client=_client_label(client),
            hour=stored_time(hour_ms),
            count=count,
        )
        for (hour_ms, reason, client), count in order
    ]
    since = min((row.started_ms for row in rows), default=None)
    return {
        "groups": groups[:MAX_GROUPS],
        "more": len(groups) - MAX_GROUPS if len(groups) > MAX_GROUPS else 0,
        "since": None if since is None else stored_time(since),
        "processes": len(rows),
    }
