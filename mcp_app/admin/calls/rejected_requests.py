"""The requests that were refused before they became a call, from heartbeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.calls.filters import stored_time
from mcp_app.audit.turned_away import OTHERS, Reason
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible
from mcp_app.models import Worker

MAX_GROUPS: Final = 200


class Refusal(NamedTuple):
    """A reason in words: the HTTP status, what it means, and what to do."""

    label: Label
    status: str
    means: Label
    remedy: Label


REFUSALS: Final[Mapping[str, Refusal]] = {
    Reason.HOST: Refusal(
        _("Wrong host"),
        "421",
        _("The address that the client uses does not belong to this site."),
        _(
            'Add the host name to ALLOWED_HOSTS or MCP["HOSTS"], or correct the'
            " address in the client. If there is a proxy, it must pass on the host."
        ),
    ),
    Reason.ORIGIN: Refusal(
        _("Wrong origin"),
        "403",
        _("A web page of another site sent the request."),
        _("If that page is yours, add its origin to MCP[“ORIGINS”]."),
    ),
    Reason.NOBODY: Refusal(
        _("Not signed in"),
        "401",
        _(
            "The client sent no credentials. Clients often try once like this before"
            " they sign in."
        ),
        _("If the client never signs in, give it an access token."),
    ),
    Reason.CREDENTIALS: Refusal(
        _("Not let in"),
        "401",
        _(
            "The client's credentials are not accepted: its token is wrong, expired,"
            " revoked, for another server or network, or its user is not active."
        ),
        _("Check the token of this client, and replace it if it has ended."),
    ),
    Reason.SERVER: Refusal(
        _("No such server"),
        "404",
        _("There is no server at the address that the client uses."),
        _("Correct the address in the client, or start the server again."),
    ),
    Reason.SESSION: Refusal(
        _("No such session"),
        "404",
        _("The session was closed, or is too old, or is somebody else's."),
        _("Nothing: clients open a new session. If a client does not, restart it."),
    ),
    Reason.METHOD: Refusal(
        _("Wrong method"),
        "405",
        _("The client, or a browser, used an HTTP method that is not supported here."),
        _(
            "Nothing, if the client works apart from this: some clients only try"
            " whether they get a stream. Under WSGI there are no streams."
        ),
    ),
    Reason.ACCEPT: Refusal(
        _("Accepts other answers"),
        "406",
        _("The client must accept both JSON and event streams, and does not."),
        _(
            "Configure the client to send the header Accept: application/json,"
            " text/event-stream. If it cannot, perhaps it is not an MCP client."
        ),
    ),
    Reason.CONTENT_TYPE: Refusal(
        _("Wrong content type"),
        "415",
        _("The request does not say that its body is JSON."),
        _("Configure the client to send Content-Type: application/json."),
    ),
    Reason.SLOW: Refusal(
        _("Too slow"),
        "408",
        _("The request did not arrive in time."),
        _("Check the network between the client and this site."),
    ),
    Reason.BODY: Refusal(
        _("Too large"),
        "413",
        _("The request is larger than the limit."),
        _("Send less, or raise the limit “body”."),
    ),
    Reason.HEADERS_SIZE: Refusal(
        _("Headers too large"),
        "431",
        _("There are too many headers, or they are too large."),
        _("Find out which header is so long. Often it is a cookie."),
    ),
    Reason.HEADERS: Refusal(
        _("Wrong headers"),
        "400",
        _("A header is missing, is repeated, or contradicts the request."),
        _("Update the client, or check whether a proxy changes headers."),
    ),
    Reason.VERSION: Refusal(
        _("Unknown version"),
        "400",
        _("The client uses a protocol version that this server does not support."),
        _("Update the client, or this server."),
    ),
    Reason.JSON: Refusal(
        _("No JSON"),
        "400",
        _("The body is not JSON."),
        _(
            "Find out which program sends such bodies, and whether a proxy changes"
            " them."
        ),
    ),
    Reason.MESSAGE: Refusal(
        _("Wrong message"),
        "400",
        _(
            "The body is JSON, but not a message, or not a method, that is allowed"
            " here."
        ),
        _("Update the client, or tell those who make it."),
    ),
    Reason.TOO_MANY: Refusal(
        _("Too many"),
        "429",
        _(
            "The client has reached a limit: of messages a minute, of open streams or"
            " of running calls."
        ),
        _(
            "Wait. If the client really needs more, raise the limit: “request_rate”"
            " and “request_burst” are those of messages."
        ),
    ),
    Reason.UNAVAILABLE: Refusal(
        _("Not available"),
        "503",
        _("A process was stopping, or its database could not be reached."),
        _("Check the database. During a deployment, a few such refusals are normal."),
    ),
    Reason.FAILED: Refusal(
        _("Server failed"),
        "500",
        _("A fault in the server."),
        _("Look into the site's log."),
    ),
    Reason.OTHER: Refusal(
        _("Refused"),
        "",
        _("Refused for a reason that this page does not know."),
        _("Look into the client's log: the answer to the client had the reason."),
    ),
}


def turned_away() -> dict[str, object]:
    """Return the refusals that live workers have reported; one query.

    Each entry counts the refusals of one client, for one reason, in one hour.
    """
    counts: Counter[tuple[int, str, str]] = Counter()
    rows = list(Worker.objects.live())
    for row in rows:
        for hour_ms, reason, client, count in row.report_of_process().refused:
            counts[hour_ms, reason, client] += count
    # The newest hours come first, and in each hour the greatest counts.
    order = sorted(counts.items(), key=lambda each: (-each[0][0], -each[1], each[0]))
    groups = [
        {
            "refusal": REFUSALS.get(reason, REFUSALS[Reason.OTHER]),
            "client": gettext("others")
            if client == OTHERS
            else visible(client) or gettext("unknown"),
            "hour": stored_time(hour_ms),
            "count": count,
        }
        for (hour_ms, reason, client), count in order[:MAX_GROUPS]
    ]
    since = min((row.started_ms for row in rows), default=None)
    return {
        "groups": groups,
        "more": max(0, len(order) - MAX_GROUPS),
        "since": None if since is None else stored_time(since),
        "processes": len(rows),
    }
