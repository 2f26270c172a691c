"""From what was seen to findings: pure functions, the same for command and page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

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
    Place,
    Proxy,
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
)

CLOSE_S: Final = 0.5
"""Ticks that all come within this were collected: they are sent in a second."""
WAIT_S: Final = 2.0
"""A request that waits so long beside another one has no worker."""
APART_MS: Final = 2_000
"""Clocks may differ by so much."""
DJANGOS_400: Final = ("Bad Request (400)", "DisallowedHost")
"""How Django answers to a host that it does not allow; the latter under `DEBUG`."""
_REDIRECTS: Final = range(300, 400)
_MAX_TEXT_LENGTH: Final = 200


@dataclass(frozen=True, slots=True)
class Site:
    """What the site's settings say of the server that is looked at."""

    slug: str = DEFAULT_SLUG
    hosts_line: str = ""
    """What lets the endpoint answer to the host of the address; "" if it does."""
    allowed_hosts_line: str = ""
    """The same of Django, where the endpoint is a view."""
    trusts_proxies: bool = False
    body: int = 0
    """Bytes that a body may have."""
    heartbeat: float = 0.0
    """Seconds for which a stream is silent."""
    signs_in: bool = False
    """Whether somebody issues tokens for the server."""


@dataclass(frozen=True, slots=True)
class _Case:
    observations: Observations
    site: Site
    report: Report | None = None
    main: Reply = field(default_factory=Reply)

    @property
    def is_secure(self) -> bool:
        return urlsplit(self.observations.url).scheme == "https"

    @property
    def address_host(self) -> str:
        return urlsplit(self.observations.url).hostname or ""

    def effective_port(self, netloc: str) -> int | None:
        return port_of_netloc(netloc, secure=self.is_secure)

    @property
    def answering_proxy(self) -> Proxy | None:
        return proxy_from_header(self.main.headers.get("server", ""))

    def remedy_lines(self, fault: Fault, header: str = "") -> str:
        netloc, site = urlsplit(self.observations.url).netloc, self.site
        place = Place(netloc, header, site.body, site.heartbeat)
        return lines_for(fault, self.answering_proxy, place)

    def reply_by_name(self, name: str) -> Reply | None:
        return self.observations.replies.get(name)


def judge_observations(observations: Observations, site: Site) -> list[Finding]:
    """Return what is found, in the order in which it is to be mended.

    Where the address does not lead to this site, nothing else can be said of it.
    """
    main = _main_reply(observations)
    case = _Case(observations, site, read_report(main), main)
    first = [*_address_findings(case)]
    if not has_answer(observations):
        return first
    first += _redirect_findings(case)
    if case.report is None:
        return first if _is_redirect(main) else [*first, *_foreign_site_findings(case)]
    first += _own_site_findings(case)
    return [*first, *(each for rule in _RULES for each in rule(case, case.report))]


def has_answer(observations: Observations) -> bool:
    """Whether anything answers at the address."""
    main = _main_reply(observations)
    return main.status != 0 or main.failure is Failure.REDIRECT


def report_in(observations: Observations) -> Report | None:
    """Return what the server said of the first probe, None if it did not know it."""
    return read_report(_main_reply(observations))


def _main_reply(observations: Observations) -> Reply:
    return observations.replies.get(Probe.TICKS.value, Reply())


# -- where the address leads --------------------------------------------------------


def _address_findings(case: _Case) -> Iterator[Finding]:
    main, rule = case.main, "address"
    if not has_answer(case.observations):
        why = visible(main.detail.strip()[:_MAX_TEXT_LENGTH])
        yield Finding(rule, Grade.PROBLEM, _no_answer(case), why)
    elif not case.is_secure and not is_loopback_host(case.address_host):
        yield Finding(
            rule,
            Grade.PROBLEM,
            _("The address is http, not https."),
            _("Everybody on the way can read tokens and answers."),
        )
    else:
        message = _("The address answers: %(url)s")
        yield Finding(
            rule, Grade.GOOD, message % {"url": visible(case.observations.url)}
        )


def _no_answer(case: _Case) -> str:
    url = {"url": visible(case.observations.url)}
    match case.main.failure:
        case Failure.TLS:
            return _("No secure connection can be made to %(url)s.") % url
        case Failure.LATE:
            return _("Nothing came from %(url)s in time.") % url
        case _:
            return _("There is no answer at %(url)s.") % url


def _is_redirect(reply: Reply) -> bool:
    return reply.failure is Failure.REDIRECT or reply.status in _REDIRECTS


def _redirect_findings(case: _Case) -> Iterator[Finding]:
    url = case.observations.url
    other = url.removesuffix("/") if url.endswith("/") else f"{url}/"
    has_redirect = False
    for address, reply in ((url, case.main), (other, case.reply_by_name(SLASH))):
        if reply is not None and _is_redirect(reply):
            has_redirect = True
            yield _describe_redirect(case, address, reply.headers.get("location", ""))
    if not has_redirect:
        message = _("The server is not moved to another address.")
        yield Finding("redirect", Grade.GOOD, message)


def _describe_redirect(case: _Case, url: str, location: str) -> Finding:
    values = {"url": visible(url), "location": visible(location[:_MAX_TEXT_LENGTH])}
    why = _("Most clients lose the body of their request in a redirect.")
    if location and leads_back(url, location):
        message = _("%(url)s redirects to itself: the scheme of the request is lost.")
        line = case.remedy_lines(Fault.SCHEME)
        return Finding("redirect", Grade.PROBLEM, message % values, why, line)
    if not location:
        message = _("%(url)s redirects to another address.")
        return Finding("redirect", Grade.PROBLEM, message % values, why)
    message = _("%(url)s redirects to %(location)s.")
    better = better_address(url, location) if url == case.observations.url else ""
    line = ""
    if better:
        why = f"{why} {_('Give people the address that it leads to.')}"
        # The site writes its address without a slash at the end, whatever is set.
        line = "" if better.endswith("/") else public_line(better, case.site.slug)
    return Finding("redirect", Grade.PROBLEM, message % values, why, line)


def _foreign_site_findings(case: _Case) -> Iterator[Finding]:
    """Say what answers instead; a server that has lost its Host is ours."""
    main, status = case.main, case.main.status
    if status == 421:  # noqa: PLR2004
        yield _refused_host(case, case.site.hosts_line)
    elif status == 400 and any(each in main.text for each in DJANGOS_400):  # noqa: PLR2004
        yield _refused_host(case, case.site.allowed_hosts_line)
    elif is_busy_reply(main):
        message = _("Others look at this server at the moment. Try again in a minute.")
        yield Finding("ours", Grade.UNKNOWN, message)
    elif is_message(main):
        yield _other_keys(_("A server of MCP answers, but not to this site's probe."))
    else:
        message = _("Something else answers (status %(status)d, %(type)s).")
        content_type = visible(main.headers.get("content-type", "")[:_MAX_TEXT_LENGTH])
        why = _("It is another site's page, or the path is not that of the endpoint.")
        what = message % {"status": status, "type": content_type or _("no type")}
        yield Finding("ours", Grade.PROBLEM, what, why)


def _other_keys(what: str) -> Finding:
    why = _(
        "It is another site, or a process with other secret keys: sessions, cursors"
        " and state of one process mean nothing to the other. Give all processes the"
        " same key."
    )
    return Finding("ours", Grade.PROBLEM, what, why)


def _own_site_findings(case: _Case) -> Iterator[Finding]:
    others = [
        name
        for name, reply in case.observations.replies.items()
        if name not in (Probe.REFUSAL, METADATA)
        and is_message(reply)
        and read_report(reply) is None
    ]
    if others:
        yield _other_keys(
            _("Some processes answer to this site's probe, and some do not.")
        )
        return
    yield Finding("ours", Grade.GOOD, _("This site answers."))


def _refused_host(case: _Case, line: str) -> Finding:
    """Say it with the line of the settings, that of the proxy if there is none."""
    why = _(
        "The proxy does not pass on the Host, or the site's settings do not allow it."
    )
    message = _("The server refuses the Host that reaches it.")
    line = line or case.remedy_lines(Fault.HOST)
    return Finding("host", Grade.PROBLEM, message, why, line)


# -- what arrives -------------------------------------------------------------------


def _host_findings(case: _Case, report: Report) -> Iterator[Finding]:
    rule, arrived = "host", host_of_netloc(report.host)
    if arrived != case.address_host:
        message = _("The Host that arrives is “%(arrived)s”, not “%(host)s”.")
        values = {
            "arrived": visible(report.host[:_MAX_TEXT_LENGTH]),
            "host": case.address_host,
        }
        why = _("The endpoint refuses requests for hosts that it does not know.")
        line = case.remedy_lines(Fault.HOST)
        yield Finding(rule, Grade.PROBLEM, message % values, why, line)
    elif case.effective_port(report.host) != case.effective_port(
        urlsplit(case.observations.url).netloc
    ):
        message = _(
            "The Host that arrives is “%(arrived)s”: the port of “%(host)s” is lost."
        )
        netloc = urlsplit(case.observations.url).netloc
        values = {"arrived": visible(report.host[:_MAX_TEXT_LENGTH]), "host": netloc}
        why = _("Django refuses forms, such as the login of the admin: wrong origin.")
        line = case.remedy_lines(Fault.HOST)
        yield Finding(rule, Grade.PROBLEM, message % values, why, line)
    elif case.site.hosts_line:
        message = _("The endpoint does not answer to the host “%(host)s”.")
        why = _("Clients get 421 at this address.")
        what = message % {"host": case.address_host}
        yield Finding(rule, Grade.PROBLEM, what, why, case.site.hosts_line)
    else:
        yield Finding(rule, Grade.GOOD, _("The Host arrives as it was sent."))


def _scheme_findings(case: _Case, report: Report) -> Iterator[Finding]:
    scheme = report.forwarded.get("x-forwarded-proto", report.scheme)
    # Each proxy may add its own; Django looks at the first, which is the client's.
    scheme = scheme.partition(",")[0].strip()
    if case.is_secure and scheme != "https":
        why = _("The site takes the request for one without TLS, and may redirect it.")
        message = _("The scheme https is lost on the way.")
        line = case.remedy_lines(Fault.SCHEME)
        yield Finding("scheme", Grade.PROBLEM, message, why, line)
    else:
        yield Finding("scheme", Grade.GOOD, _("The scheme arrives."))


def _client_address_findings(case: _Case, report: Report) -> Iterator[Finding]:
    arrived, rule = "x-forwarded-for" in report.forwarded, "client address"
    why = _("Rates and tokens for networks need the addresses of clients.")
    if arrived and not case.site.trusts_proxies:
        message = _(
            "A proxy passes addresses of clients on, and the site ignores them."
        )
        line = 'MCP["TRUSTED_PROXIES"] = 1'
        yield Finding(rule, Grade.PROBLEM, message, why, line)
    elif case.site.trusts_proxies and not arrived:
        message = _("The site expects addresses of clients from a proxy; none arrive.")
        yield Finding(
            rule, Grade.PROBLEM, message, why, case.remedy_lines(Fault.ADDRESS)
        )
    elif arrived:
        yield Finding(rule, Grade.GOOD, _("Addresses of clients are as expected."))
    else:
        message = _(
            "No proxy names the addresses of clients, and TRUSTED_PROXIES expects none."
        )
        yield Finding(rule, Grade.GOOD, message)


def _header_findings(case: _Case, report: Report) -> Iterator[Finding]:
    wrong = {
        name: state for name, state in report.headers.items() if state != UNCHANGED
    }
    for name in wrong:
        message = _("The header %(name)s does not arrive as it was sent.")
        why = _("Clients need it. Take the line out that removes or changes it.")
        line = case.remedy_lines(Fault.HEADER, name)
        yield Finding("headers", Grade.PROBLEM, message % {"name": name}, why, line)
    if not wrong:
        yield Finding("headers", Grade.GOOD, _("All headers of clients arrive."))


# -- what comes back ----------------------------------------------------------------


def _refusal_findings(case: _Case, report: Report) -> Iterator[Finding]:
    reply, rule = case.reply_by_name(Probe.REFUSAL.value), "refusals"
    if reply is None or is_busy_reply(reply):
        yield _unchecked_finding(rule)
        return
    challenged = reply.headers.get("www-authenticate", "").startswith("Bearer")
    if reply.status == 401 and challenged and read_report(reply) is not None:  # noqa: PLR2004
        yield Finding(rule, Grade.GOOD, _("Refusals reach clients as they are sent."))
        return
    why = _("Clients learn from the server's own answer 401 how to sign in.")
    message = _("A refusal of the server does not reach clients as it was sent.")
    yield Finding(rule, Grade.PROBLEM, message, why, case.remedy_lines(Fault.REFUSALS))


def _stream_findings(case: _Case, report: Report) -> Iterator[Finding]:
    rule = "streams"
    if report.interface == "WSGI":
        message = _("This site has no streams (WSGI).")
        yield Finding(rule, Grade.UNKNOWN, message)
        return
    why = _("Clients wait in vain for progress and questions until a call ends.")
    coding = case.main.headers.get("content-encoding", "identity")
    stream = read_stream(case.main)
    if coding != "identity":
        message = _("Streams are compressed (%(coding)s).")
        what = message % {"coding": visible(coding[:_MAX_TEXT_LENGTH])}
        line = case.remedy_lines(Fault.COMPRESSION)
        yield Finding(rule, Grade.PROBLEM, what, why, line)
    elif len(stream.ticks) < TICKS or not stream.ended:
        message = _("A stream of two seconds did not come to its end.")
        yield Finding(
            rule, Grade.PROBLEM, message, why, case.remedy_lines(Fault.TIMEOUT)
        )
    elif stream.ticks[-1] - stream.ticks[0] < CLOSE_S:
        message = _("Streams are collected on the way, and come all at once.")
        yield Finding(
            rule, Grade.PROBLEM, message, why, case.remedy_lines(Fault.BUFFERING)
        )
    else:
        yield Finding(rule, Grade.GOOD, _("What a stream sends comes at once."))


def _timeout_findings(case: _Case, report: Report) -> Iterator[Finding]:
    reply, rule = case.reply_by_name(Probe.SILENCE.value), "time-out"
    if reply is None or is_busy_reply(reply):
        message = _("Whether silent streams stay open takes longer to see.")
        if case.observations.by_browser:
            yield Finding(
                rule, Grade.UNKNOWN, message, _("Tick the box, and look again.")
            )
        else:
            yield Finding(rule, Grade.UNKNOWN, message, "", "mcp_check --slow")
    elif read_stream(reply).ended:
        yield Finding(rule, Grade.GOOD, _("A stream may be silent for a while."))
    else:
        message = _("A stream that is silent for a while is cut.")
        why = _("Long calls end without their answer.")
        yield Finding(
            rule, Grade.PROBLEM, message, why, case.remedy_lines(Fault.TIMEOUT)
        )


def _body_findings(case: _Case, report: Report) -> Iterator[Finding]:
    reply, rule = case.reply_by_name(Probe.BODY.value), "body"
    if reply is None or is_busy_reply(reply):
        yield _unchecked_finding(rule)
        return
    if reply.failure is Failure.LATE or reply.status == 408:  # noqa: PLR2004
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
    yield Finding(
        rule, Grade.PROBLEM, message % size, why, case.remedy_lines(Fault.BODY)
    )


def _side_by_side(case: _Case, report: Report) -> Iterator[Finding]:
    reply, rule = case.reply_by_name(BESIDE), "side by side"
    open_reply = case.reply_by_name(Probe.HOLD.value)
    if (
        reply is None
        or open_reply is None
        or is_busy_reply(reply)
        or is_busy_reply(open_reply)
    ):
        yield _unchecked_finding(rule)
    elif reply.seconds >= WAIT_S or reply.status == 0:
        message = _("A request waits as long as another one is open.")
        why = _("One client that listens keeps all others out.")
        line = "gunicorn mysite.wsgi --workers 2 --threads 8"
        yield Finding(rule, Grade.PROBLEM, message, why, line)
    else:
        message = _("Requests are served side by side.")
        yield Finding(rule, Grade.GOOD, message)


def _well_known(case: _Case, report: Report) -> Iterator[Finding]:
    """Look at the metadata by which programs find out who issues tokens (RFC 9728)."""
    if not case.site.signs_in:
        return
    reply, rule = case.reply_by_name(METADATA), "well-known"
    if reply is None:
        yield _unchecked_finding(rule)
        return
    resource = messages_of(reply)[0].get("resource")
    where = {"url": metadata_address(case.observations.url)}
    why = _("Programs cannot find out how to sign in.")
    if not isinstance(resource, str) or reply.status != 200:  # noqa: PLR2004
        message = _("There is no metadata at %(url)s, but something else.")
        yield Finding(rule, Grade.PROBLEM, message % where, why)
    elif not _is_same_address(resource, case.observations.url):
        message = _("The metadata at %(url)s is that of %(other)s.")
        other = {**where, "other": visible(resource[:_MAX_TEXT_LENGTH])}
        line = public_line(case.observations.url, case.site.slug)
        yield Finding(rule, Grade.PROBLEM, message % other, why, line)
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
        apart = 0 if process_report is None else _clock_skew_ms(process_report, reply)
        if process_report is not None and apart > APART_MS:
            message = _("The clocks are %(seconds).1f s apart (process %(process)s).")
            values = {
                "seconds": apart / 1000,
                "process": visible(process_report.process),
            }
            why = _("Tokens end early or late. Let NTP set the clocks.")
            line = "timedatectl set-ntp true"
            yield Finding(rule, Grade.PROBLEM, message % values, why, line)
            return
    yield Finding(rule, Grade.GOOD, _("The clocks agree."))


def _clock_skew_ms(report: Report, reply: Reply) -> int:
    """Return how far the clocks of a process, the database and ours are apart."""
    process, database = report.clock_ms, report.database_ms
    apart = 0 if database is None else abs(database - process)
    if reply.clock_ms:
        # The report may have been on its way for as long as the request took.
        behind = reply.clock_ms - process - int(reply.seconds * 1000)
        apart = max(apart, process - reply.clock_ms, behind)
    return apart


def _unchecked_finding(rule: str) -> Finding:
    return Finding(rule, Grade.UNKNOWN, _("This was not looked at."))


_RULES: Final[tuple[Callable[[_Case, Report], Iterator[Finding]], ...]] = (
    *(
        _host_findings,
        _scheme_findings,
        _client_address_findings,
        _header_findings,
        _refusal_findings,
        _stream_findings,
        _timeout_findings,
        _body_findings,
    ),
    *(_side_by_side, _well_known, _clock_findings),
)
