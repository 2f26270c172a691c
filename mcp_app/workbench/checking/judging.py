"""Turns observations of a server into findings, for the command and the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import SplitResult, urlsplit

from django.utils.translation import gettext as _

from mcp_app.interface.rules import visible
from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.protocol.headers import is_loopback_host
from mcp_app.protocol.oauth.addresses import canonical
from mcp_app.transports.http.probe import TICKS, UNCHANGED, Probe
from mcp_app.workbench.checking.client import (
    Failure,
    Reply,
    better_address,
    leads_back,
    public_line,
)
from mcp_app.workbench.checking.findings import (
    Fault,
    Finding,
    Grade,
    lines_for,
    proxy_from_header,
)
from mcp_app.workbench.checking.observing import (
    BESIDE,
    METADATA,
    SLASH,
    Observations,
    Report,
    host_of_netloc,
    is_busy_reply,
    is_message,
    messages_of,
    metadata_address,
    port_of_netloc,
    read_report,
    read_stream,
    with_other_slash,
)

CLOSE_S: Final = 0.5
"""The ticks are sent over a second: if they arrive closer, something collected them."""
WAIT_S: Final = 2.0
"""If a request waits so long while another one is open, no worker was free."""
APART_MS: Final = 2_000
"""How much two clocks may differ."""
DJANGOS_400: Final = ("Bad Request (400)", "DisallowedHost")
"""How Django answers to a host that it does not allow; the second under `DEBUG`."""
_REDIRECTS: Final = range(300, 400)
_MAX_TEXT_LENGTH: Final = 200


@dataclass(frozen=True, slots=True)
class Site:
    """What the site's settings say of the server that is looked at."""

    slug: str = DEFAULT_SLUG
    hosts_line: str = ""
    """The setting that lets the endpoint answer to this host; "" if it does already."""
    allowed_hosts_line: str = ""
    """The same setting for Django, if the endpoint is a view."""
    trusts_proxies: bool = False
    body: int = 0
    """Bytes that a body may have."""
    heartbeat: float = 0.0
    """The longest time that a stream is silent, in seconds."""
    signs_in: bool = False
    """Whether somebody issues tokens for the server."""


@dataclass(frozen=True, slots=True)
class _Case:
    """What was observed of one server; `main` is the reply to the first probe."""

    observations: Observations
    site: Site
    main: Reply
    parts: SplitResult

    @property
    def is_secure(self) -> bool:
        return self.parts.scheme == "https"

    @property
    def address_host(self) -> str:
        return self.parts.hostname or ""

    def reply_by_name(self, name: str) -> Reply | None:
        """Return the reply to a probe; None without one, or if the server was busy."""
        reply = self.observations.replies.get(name)
        return None if reply is None or is_busy_reply(reply) else reply

    def problem(
        self, rule: str, what: str, why: str, fault: Fault, header: str = ""
    ) -> Finding:
        """Return a problem with the lines of the proxy that mend it."""
        lines = lines_for(
            fault,
            proxy_from_header(self.main.headers.get("server", "")),
            host=self.parts.netloc,
            header=header,
            body=self.site.body,
            heartbeat=self.site.heartbeat,
        )
        return _problem(rule, what, why, lines)


def _problem(rule: str, what: str, why: str, line: str = "") -> Finding:
    return Finding(rule, Grade.PROBLEM, what, why, line)


def judge_observations(observations: Observations, site: Site) -> list[Finding]:
    """Return the findings, in the order in which people should mend them.

    If the address does not lead to this site, nothing else is judged.
    """
    main = observations.main
    report = read_report(main)
    case = _Case(observations, site, main, urlsplit(observations.url))
    first = [_address_finding(case)]
    if not has_answer(observations):
        return first
    first += _redirect_findings(case)
    if report is None:
        return first if _is_redirect(main) else [*first, _foreign_site_finding(case)]
    rules = (each for rule in _RULES for each in rule(case, report))
    return [*first, _own_site_finding(case), *rules]


def has_answer(observations: Observations) -> bool:
    """Whether anything answers at the address."""
    main = observations.main
    return main.status != 0 or main.failure is Failure.REDIRECT


# -- where the address leads --------------------------------------------------------


def _address_finding(case: _Case) -> Finding:
    main, rule = case.main, "address"
    url = {"url": visible(case.observations.url)}
    if not has_answer(case.observations):
        match main.failure:
            case Failure.TLS:
                message = _("No secure connection can be made to %(url)s.")
            case Failure.LATE:
                message = _("Nothing came from %(url)s in time.")
            case _:
                message = _("There is no answer at %(url)s.")
        why = visible(main.detail.strip()[:_MAX_TEXT_LENGTH])
        return _problem(rule, message % url, why)
    if not case.is_secure and not is_loopback_host(case.address_host):
        message = _("The address is http, not https.")
        why = _("Everybody on the way can read tokens and answers.")
        return _problem(rule, message, why)
    return Finding(rule, Grade.GOOD, _("The address answers: %(url)s") % url)


def _is_redirect(reply: Reply) -> bool:
    return reply.failure is Failure.REDIRECT or reply.status in _REDIRECTS


def _redirect_findings(case: _Case) -> Iterator[Finding]:
    url = case.observations.url
    slash = case.observations.replies.get(SLASH, Reply())
    replies = {url: case.main, with_other_slash(url): slash}
    redirects = {url: reply for url, reply in replies.items() if _is_redirect(reply)}
    for address, reply in redirects.items():
        yield _describe_redirect(case, address, reply.headers.get("location", ""))
    if not redirects:
        message = _("The server is not moved to another address.")
        yield Finding("redirect", Grade.GOOD, message)


def _describe_redirect(case: _Case, url: str, location: str) -> Finding:
    rule, line = "redirect", ""
    values = {"url": visible(url), "location": visible(location[:_MAX_TEXT_LENGTH])}
    why = _("Most clients lose the body of their request in a redirect.")
    if not location:
        message = _("%(url)s redirects to another address.")
        return _problem(rule, message % values, why)
    if leads_back(url, location):
        message = _("%(url)s redirects to itself: the scheme of the request is lost.")
        return case.problem(rule, message % values, why, Fault.SCHEME)
    better = better_address(url, location) if url == case.observations.url else ""
    if better:
        why = f"{why} {_('Give people the address that it leads to.')}"
        # The site always writes its address without a slash at the end.
        line = "" if better.endswith("/") else public_line(better, case.site.slug)
    return _problem(rule, _("%(url)s redirects to %(location)s.") % values, why, line)


def _foreign_site_finding(case: _Case) -> Finding:
    """Say what answers instead of this site; it may be this site without its Host."""
    main, status = case.main, case.main.status
    if status == HTTPStatus.MISDIRECTED_REQUEST:
        return _refused_host(case, case.site.hosts_line)
    if status == HTTPStatus.BAD_REQUEST and any(
        each in main.text for each in DJANGOS_400
    ):
        return _refused_host(case, case.site.allowed_hosts_line)
    if is_busy_reply(main):
        message = _("Others look at this server at the moment. Try again in a minute.")
        return Finding("ours", Grade.UNKNOWN, message)
    if is_message(main):
        return _other_keys(_("A server of MCP answers, but not to this site's probe."))
    message = _("Something else answers (status %(status)d, %(type)s).")
    content_type = visible(main.headers.get("content-type", "")[:_MAX_TEXT_LENGTH])
    why = _("It is another site's page, or the path is not that of the endpoint.")
    what = message % {"status": status, "type": content_type or _("no type")}
    return _problem("ours", what, why)


def _other_keys(what: str) -> Finding:
    why = _(
        "It is another site, or a process with other secret keys: sessions, cursors"
        " and state of one process mean nothing to the other. Give all processes the"
        " same key."
    )
    return _problem("ours", what, why)


def _own_site_finding(case: _Case) -> Finding:
    for name, reply in case.observations.replies.items():
        # A refusal and metadata look like those of any server: they prove nothing.
        is_other = is_message(reply) and read_report(reply) is None
        if is_other and name not in (Probe.REFUSAL, METADATA):
            return _other_keys(
                _("Some processes answer to this site's probe, and some do not.")
            )
    return Finding("ours", Grade.GOOD, _("This site answers."))


def _refused_host(case: _Case, line: str) -> Finding:
    """Say that the host is refused: with the settings' line, or with the proxy's."""
    why = _(
        "The proxy does not pass on the Host, or the site's settings do not allow it."
    )
    message = _("The server refuses the Host that reaches it.")
    if line:
        return _problem("host", message, why, line)
    return case.problem("host", message, why, Fault.HOST)


# -- what arrives -------------------------------------------------------------------


def _host_findings(case: _Case, report: Report) -> Iterator[Finding]:
    rule, netloc = "host", case.parts.netloc
    arrived = visible(report.host[:_MAX_TEXT_LENGTH])
    if host_of_netloc(report.host) != case.address_host:
        message = _("The Host that arrives is “%(arrived)s”, not “%(host)s”.")
        values = {"arrived": arrived, "host": case.address_host}
        why = _("The endpoint refuses requests for hosts that it does not know.")
        yield case.problem(rule, message % values, why, Fault.HOST)
    elif port_of_netloc(report.host, secure=case.is_secure) != port_of_netloc(
        netloc, secure=case.is_secure
    ):
        message = _(
            "The Host that arrives is “%(arrived)s”: the port of “%(host)s” is lost."
        )
        values = {"arrived": arrived, "host": netloc}
        why = _("Django refuses forms, such as the login of the admin: wrong origin.")
        yield case.problem(rule, message % values, why, Fault.HOST)
    elif case.site.hosts_line:
        message = _("The endpoint does not answer to the host “%(host)s”.")
        why = _("Clients get 421 at this address.")
        what = message % {"host": case.address_host}
        yield _problem(rule, what, why, case.site.hosts_line)
    else:
        yield Finding(rule, Grade.GOOD, _("The Host arrives as it was sent."))


def _scheme_findings(case: _Case, report: Report) -> Iterator[Finding]:
    scheme = report.forwarded.get("x-forwarded-proto", report.scheme)
    # Each proxy may add a scheme; Django looks at the first one, the client's.
    if case.is_secure and scheme.partition(",")[0].strip() != "https":
        why = _("The site takes the request for one without TLS, and may redirect it.")
        message = _("The scheme https is lost on the way.")
        yield case.problem("scheme", message, why, Fault.SCHEME)
    else:
        yield Finding("scheme", Grade.GOOD, _("The scheme arrives."))


def _client_address_findings(case: _Case, report: Report) -> Iterator[Finding]:
    arrived, rule = "x-forwarded-for" in report.forwarded, "client address"
    why = _("Rates and tokens for networks need the addresses of clients.")
    match arrived, case.site.trusts_proxies:
        case True, False:
            message = _(
                "A proxy passes addresses of clients on, and the site ignores them."
            )
            yield _problem(rule, message, why, 'MCP["TRUSTED_PROXIES"] = 1')
        case False, True:
            message = _(
                "The site expects addresses of clients from a proxy; none arrive."
            )
            yield case.problem(rule, message, why, Fault.ADDRESS)
        case True, True:
            message = _("Addresses of clients are as expected.")
            yield Finding(rule, Grade.GOOD, message)
        case _:
            message = _(
                "No proxy names the addresses of clients, and TRUSTED_PROXIES expects"
                " none."
            )
            yield Finding(rule, Grade.GOOD, message)


def _header_findings(case: _Case, report: Report) -> Iterator[Finding]:
    wrong = [name for name, state in report.headers.items() if state != UNCHANGED]
    for name in wrong:
        message = _("The header %(name)s does not arrive as it was sent.")
        why = _("Clients need it. Take the line out that removes or changes it.")
        yield case.problem("headers", message % {"name": name}, why, Fault.HEADER, name)
    if not wrong:
        yield Finding("headers", Grade.GOOD, _("All headers of clients arrive."))


# -- what comes back ----------------------------------------------------------------


def _refusal_findings(case: _Case, report: Report) -> Iterator[Finding]:
    reply, rule = case.reply_by_name(Probe.REFUSAL.value), "refusals"
    if reply is None:
        yield _unchecked_finding(rule)
        return
    challenged = reply.headers.get("www-authenticate", "").startswith("Bearer")
    is_refusal = reply.status == HTTPStatus.UNAUTHORIZED and challenged
    if is_refusal and read_report(reply) is not None:
        yield Finding(rule, Grade.GOOD, _("Refusals reach clients as they are sent."))
        return
    why = _("Clients learn from the server's own answer 401 how to sign in.")
    message = _("A refusal of the server does not reach clients as it was sent.")
    yield case.problem(rule, message, why, Fault.REFUSALS)


def _stream_findings(case: _Case, report: Report) -> Iterator[Finding]:
    rule = "streams"
    why = _("Clients wait in vain for progress and questions until a call ends.")
    coding = case.main.headers.get("content-encoding", "identity")
    stream = read_stream(case.main)
    if report.interface == "WSGI":
        message = _("This site has no streams (WSGI).")
        yield Finding(rule, Grade.UNKNOWN, message)
    elif coding != "identity":
        message = _("Streams are compressed (%(coding)s).")
        what = message % {"coding": visible(coding[:_MAX_TEXT_LENGTH])}
        yield case.problem(rule, what, why, Fault.COMPRESSION)
    elif len(stream.ticks) < TICKS or not stream.ended:
        message = _("A stream of two seconds did not come to its end.")
        yield case.problem(rule, message, why, Fault.TIMEOUT)
    elif stream.ticks[-1] - stream.ticks[0] < CLOSE_S:
        message = _("Streams are collected on the way, and come all at once.")
        yield case.problem(rule, message, why, Fault.BUFFERING)
    else:
        yield Finding(rule, Grade.GOOD, _("What a stream sends comes at once."))


def _timeout_findings(case: _Case, report: Report) -> Iterator[Finding]:
    reply, rule = case.reply_by_name(Probe.SILENCE.value), "time-out"
    if reply is None:
        message = _("Whether silent streams stay open takes longer to see.")
        if case.observations.by_browser:
            why = _("Tick the box, and look again.")
            yield Finding(rule, Grade.UNKNOWN, message, why)
        else:
            yield Finding(rule, Grade.UNKNOWN, message, "", "mcp_check --slow")
    elif read_stream(reply).ended:
        yield Finding(rule, Grade.GOOD, _("A stream may be silent for a while."))
    else:
        message = _("A stream that is silent for a while is cut.")
        why = _("Long calls end without their answer.")
        yield case.problem(rule, message, why, Fault.TIMEOUT)


def _body_findings(case: _Case, report: Report) -> Iterator[Finding]:
    reply, rule = case.reply_by_name(Probe.BODY.value), "body"
    if reply is None:
        yield _unchecked_finding(rule)
        return
    if reply.failure is Failure.LATE or reply.status == HTTPStatus.REQUEST_TIMEOUT:
        message = _("A large body does not arrive in time: the way is slow.")
        yield Finding(rule, Grade.UNKNOWN, message)
        return
    body_report, size = read_report(reply), {"size": case.observations.body}
    if body_report is not None and body_report.body == case.observations.body:
        message = _("A body of %(size)d bytes arrives.")
        yield Finding(rule, Grade.GOOD, message % size)
        return
    message = _("A body of %(size)d bytes, which the server takes, does not arrive.")
    why = _("Calls with large arguments, such as files, fail.")
    yield case.problem(rule, message % size, why, Fault.BODY)


def _side_by_side(case: _Case, report: Report) -> Iterator[Finding]:
    reply, rule = case.reply_by_name(BESIDE), "side by side"
    if reply is None or case.reply_by_name(Probe.HOLD.value) is None:
        yield _unchecked_finding(rule)
    elif reply.seconds >= WAIT_S or reply.status == 0:
        message = _("A request waits as long as another one is open.")
        why = _("One client that listens keeps all others out.")
        line = "gunicorn mysite.wsgi --workers 2 --threads 8"
        yield _problem(rule, message, why, line)
    else:
        yield Finding(rule, Grade.GOOD, _("Requests are served side by side."))


def _well_known(case: _Case, report: Report) -> Iterator[Finding]:
    """Look at the metadata by which programs find out who issues tokens (RFC 9728)."""
    if not case.site.signs_in:
        return
    reply, rule = case.observations.replies.get(METADATA), "well-known"
    if reply is None:
        yield _unchecked_finding(rule)
        return
    url = case.observations.url
    resource = messages_of(reply)[0].get("resource")
    where = {"url": metadata_address(url)}
    why = _("Programs cannot find out how to sign in.")
    if not isinstance(resource, str) or reply.status != HTTPStatus.OK:
        message = _("There is no metadata at %(url)s, but something else.")
        yield _problem(rule, message % where, why)
    elif not _is_same_address(resource, url):
        message = _("The metadata at %(url)s is that of %(other)s.")
        other = {**where, "other": visible(resource[:_MAX_TEXT_LENGTH])}
        yield _problem(rule, message % other, why, public_line(url, case.site.slug))
    else:
        yield Finding(rule, Grade.GOOD, _("Programs find out how to sign in."))


def _is_same_address(resource: str, url: str) -> bool:
    try:
        return canonical(resource) == canonical(url)
    except ValueError:
        return False


def _clock_findings(case: _Case, report: Report) -> Iterator[Finding]:
    rule = "clocks"
    for reply in case.observations.replies.values():
        process_report = read_report(reply)
        if process_report is None:
            continue
        apart = _clock_skew_ms(process_report, reply)
        if apart > APART_MS:
            message = _("The clocks are %(seconds).1f s apart (process %(process)s).")
            process = visible(process_report.process)
            what = message % {"seconds": apart / 1000, "process": process}
            why = _("Tokens end early or late. Let NTP set the clocks.")
            yield _problem(rule, what, why, "timedatectl set-ntp true")
            return
    yield Finding(rule, Grade.GOOD, _("The clocks agree."))


def _clock_skew_ms(report: Report, reply: Reply) -> int:
    process, database = report.clock_ms, report.database_ms
    apart = 0 if database is None else abs(database - process)
    if reply.clock_ms:
        # The report may have been on its way as long as the whole request took.
        behind = reply.clock_ms - process - int(reply.seconds * 1000)
        apart = max(apart, process - reply.clock_ms, behind)
    return apart


def _unchecked_finding(rule: str) -> Finding:
    return Finding(rule, Grade.UNKNOWN, _("This was not looked at."))


_RULES: Final[tuple[Callable[[_Case, Report], Iterator[Finding]], ...]] = (
    _host_findings,
    _scheme_findings,
    _client_address_findings,
    _header_findings,
    _refusal_findings,
    _stream_findings,
    _timeout_findings,
    _body_findings,
    _side_by_side,
    _well_known,
    _clock_findings,
)
