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
from mcp_app.transports.http.probe import AS_SENT, TICKS, Probe
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
    proxy_of,
)
from mcp_app.workbench.checking.observing import (
    BESIDE,
    METADATA,
    SLASH,
    Observations,
    Report,
    host_of,
    is_busy,
    is_message,
    messages_of,
    metadata_address,
    port_of,
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
_LONGEST: Final = 200


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
    seen: Observations
    site: Site
    report: Report | None = None
    main: Reply = field(default_factory=Reply)

    @property
    def secure(self) -> bool:
        return urlsplit(self.seen.url).scheme == "https"

    @property
    def host(self) -> str:
        return urlsplit(self.seen.url).hostname or ""

    def port_of(self, netloc: str) -> int | None:
        return port_of(netloc, secure=self.secure)

    @property
    def proxy(self) -> Proxy | None:
        return proxy_of(self.main.headers.get("server", ""))

    def lines(self, fault: Fault, header: str = "") -> str:
        netloc, site = urlsplit(self.seen.url).netloc, self.site
        place = Place(netloc, header, site.body, site.heartbeat)
        return lines_for(fault, self.proxy, place)

    def reply(self, name: str) -> Reply | None:
        return self.seen.replies.get(name)


def judge(seen: Observations, site: Site) -> list[Finding]:
    """Return what is found, in the order in which it is to be mended.

    Where the address does not lead to this site, nothing else can be said of it.
    """
    main = _main(seen)
    case = _Case(seen, site, read_report(main), main)
    first = [*_address(case)]
    if not has_answer(seen):
        return first
    first += _redirect(case)
    if case.report is None:
        return first if _is_redirect(main) else [*first, *_not_ours(case)]
    first += _ours(case)
    return [*first, *(each for rule in _RULES for each in rule(case, case.report))]


def has_answer(seen: Observations) -> bool:
    """Whether anything answers at the address."""
    main = _main(seen)
    return main.status != 0 or main.failure is Failure.REDIRECT


def report_in(seen: Observations) -> Report | None:
    """Return what the server said of the first probe, None if it did not know it."""
    return read_report(_main(seen))


def _main(seen: Observations) -> Reply:
    return seen.replies.get(Probe.TICKS.value, Reply())


# -- where the address leads --------------------------------------------------------


def _address(case: _Case) -> Iterator[Finding]:
    main, rule = case.main, "address"
    if not has_answer(case.seen):
        why = visible(main.detail.strip()[:_LONGEST])
        yield Finding(rule, Grade.PROBLEM, _no_answer(case), why)
    elif not case.secure and not is_loopback_host(case.host):
        yield Finding(
            rule,
            Grade.PROBLEM,
            _("The address is http, not https."),
            _("Everybody on the way can read tokens and answers."),
        )
    else:
        said = _("The address answers: %(url)s")
        yield Finding(rule, Grade.GOOD, said % {"url": visible(case.seen.url)})


def _no_answer(case: _Case) -> str:
    url = {"url": visible(case.seen.url)}
    match case.main.failure:
        case Failure.TLS:
            return _("No secure connection can be made to %(url)s.") % url
        case Failure.LATE:
            return _("Nothing came from %(url)s in time.") % url
        case _:
            return _("There is no answer at %(url)s.") % url


def _is_redirect(reply: Reply) -> bool:
    return reply.failure is Failure.REDIRECT or reply.status in _REDIRECTS


def _redirect(case: _Case) -> Iterator[Finding]:
    url = case.seen.url
    other = url.removesuffix("/") if url.endswith("/") else f"{url}/"
    found = False
    for asked, reply in ((url, case.main), (other, case.reply(SLASH))):
        if reply is not None and _is_redirect(reply):
            found = True
            yield _redirected(case, asked, reply.headers.get("location", ""))
    if not found:
        said = _("The server is not moved to another address.")
        yield Finding("redirect", Grade.GOOD, said)


def _redirected(case: _Case, asked: str, location: str) -> Finding:
    named = {"url": visible(asked), "location": visible(location[:_LONGEST])}
    why = _("Most clients lose the body of their request in a redirect.")
    if location and leads_back(asked, location):
        said = _("%(url)s redirects to itself: the scheme of the request is lost.")
        line = case.lines(Fault.SCHEME)
        return Finding("redirect", Grade.PROBLEM, said % named, why, line)
    if not location:
        said = _("%(url)s redirects to another address.")
        return Finding("redirect", Grade.PROBLEM, said % named, why)
    said = _("%(url)s redirects to %(location)s.")
    better = better_address(asked, location) if asked == case.seen.url else ""
    line = ""
    if better:
        why = f"{why} {_('Give people the address that it leads to.')}"
        # The site writes its address without a slash at the end, whatever is set.
        line = "" if better.endswith("/") else public_line(better, case.site.slug)
    return Finding("redirect", Grade.PROBLEM, said % named, why, line)


def _not_ours(case: _Case) -> Iterator[Finding]:
    """Say what answers instead; a server that has lost its Host is ours."""
    main, status = case.main, case.main.status
    if status == 421:  # noqa: PLR2004
        yield _refused_host(case, case.site.hosts_line)
    elif status == 400 and any(each in main.text for each in DJANGOS_400):  # noqa: PLR2004
        yield _refused_host(case, case.site.allowed_hosts_line)
    elif is_busy(main):
        said = _("Others look at this server at the moment. Try again in a minute.")
        yield Finding("ours", Grade.UNKNOWN, said)
    elif is_message(main):
        yield _other_keys(_("A server of MCP answers, but not to this site's probe."))
    else:
        said = _("Something else answers (status %(status)d, %(type)s).")
        shown = visible(main.headers.get("content-type", "")[:_LONGEST])
        why = _("It is another site's page, or the path is not that of the endpoint.")
        what = said % {"status": status, "type": shown or _("no type")}
        yield Finding("ours", Grade.PROBLEM, what, why)


def _other_keys(what: str) -> Finding:
    why = _(
        "It is another site, or a process with other secret keys: sessions, cursors"
        " and state of one process mean nothing to the other. Give all processes the"
        " same key."
    )
    return Finding("ours", Grade.PROBLEM, what, why)


def _ours(case: _Case) -> Iterator[Finding]:
    others = [
        name
        for name, reply in case.seen.replies.items()
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
    said = _("The server refuses the Host that reaches it.")
    line = line or case.lines(Fault.HOST)
    return Finding("host", Grade.PROBLEM, said, why, line)


# -- what arrives -------------------------------------------------------------------


def _host(case: _Case, report: Report) -> Iterator[Finding]:
    rule, arrived = "host", host_of(report.host)
    if arrived != case.host:
        said = _("The Host that arrives is “%(arrived)s”, not “%(host)s”.")
        named = {"arrived": visible(report.host[:_LONGEST]), "host": case.host}
        why = _("The endpoint refuses requests for hosts that it does not know.")
        line = case.lines(Fault.HOST)
        yield Finding(rule, Grade.PROBLEM, said % named, why, line)
    elif case.port_of(report.host) != case.port_of(urlsplit(case.seen.url).netloc):
        said = _(
            "The Host that arrives is “%(arrived)s”: the port of “%(host)s” is lost."
        )
        netloc = urlsplit(case.seen.url).netloc
        named = {"arrived": visible(report.host[:_LONGEST]), "host": netloc}
        why = _("Django refuses forms, such as the login of the admin: wrong origin.")
        line = case.lines(Fault.HOST)
        yield Finding(rule, Grade.PROBLEM, said % named, why, line)
    elif case.site.hosts_line:
        said = _("The endpoint does not answer to the host “%(host)s”.")
        why = _("Clients get 421 at this address.")
        what = said % {"host": case.host}
        yield Finding(rule, Grade.PROBLEM, what, why, case.site.hosts_line)
    else:
        yield Finding(rule, Grade.GOOD, _("The Host arrives as it was sent."))


def _scheme(case: _Case, report: Report) -> Iterator[Finding]:
    told = report.forwarded.get("x-forwarded-proto", report.scheme)
    # Each proxy may add its own; Django looks at the first, which is the client's.
    told = told.partition(",")[0].strip()
    if case.secure and told != "https":
        why = _("The site takes the request for one without TLS, and may redirect it.")
        said = _("The scheme https is lost on the way.")
        line = case.lines(Fault.SCHEME)
        yield Finding("scheme", Grade.PROBLEM, said, why, line)
    else:
        yield Finding("scheme", Grade.GOOD, _("The scheme arrives."))


def _peer(case: _Case, report: Report) -> Iterator[Finding]:
    arrived, rule = "x-forwarded-for" in report.forwarded, "client address"
    why = _("Rates and tokens for networks need the addresses of clients.")
    if arrived and not case.site.trusts_proxies:
        said = _("A proxy passes addresses of clients on, and the site ignores them.")
        line = 'MCP["TRUSTED_PROXIES"] = 1'
        yield Finding(rule, Grade.PROBLEM, said, why, line)
    elif case.site.trusts_proxies and not arrived:
        said = _("The site expects addresses of clients from a proxy; none arrive.")
        yield Finding(rule, Grade.PROBLEM, said, why, case.lines(Fault.ADDRESS))
    elif arrived:
        yield Finding(rule, Grade.GOOD, _("Addresses of clients are as expected."))
    else:
        said = _(
            "No proxy names the addresses of clients, and TRUSTED_PROXIES expects none."
        )
        yield Finding(rule, Grade.GOOD, said)


def _headers(case: _Case, report: Report) -> Iterator[Finding]:
    wrong = {name: state for name, state in report.headers.items() if state != AS_SENT}
    for name in wrong:
        said = _("The header %(name)s does not arrive as it was sent.")
        why = _("Clients need it. Take the line out that removes or changes it.")
        line = case.lines(Fault.HEADER, name)
        yield Finding("headers", Grade.PROBLEM, said % {"name": name}, why, line)
    if not wrong:
        yield Finding("headers", Grade.GOOD, _("All headers of clients arrive."))


# -- what comes back ----------------------------------------------------------------


def _refusals(case: _Case, report: Report) -> Iterator[Finding]:
    reply, rule = case.reply(Probe.REFUSAL.value), "refusals"
    if reply is None or is_busy(reply):
        yield _not_seen(rule)
        return
    challenged = reply.headers.get("www-authenticate", "").startswith("Bearer")
    if reply.status == 401 and challenged and read_report(reply) is not None:  # noqa: PLR2004
        yield Finding(rule, Grade.GOOD, _("Refusals reach clients as they are sent."))
        return
    why = _("Clients learn from the server's own answer 401 how to sign in.")
    said = _("A refusal of the server does not reach clients as it was sent.")
    yield Finding(rule, Grade.PROBLEM, said, why, case.lines(Fault.REFUSALS))


def _streams(case: _Case, report: Report) -> Iterator[Finding]:
    rule = "streams"
    if report.interface == "WSGI":
        said = _("This site has no streams (WSGI).")
        yield Finding(rule, Grade.UNKNOWN, said)
        return
    why = _("Clients wait in vain for progress and questions until a call ends.")
    coding = case.main.headers.get("content-encoding", "identity")
    stream = read_stream(case.main)
    if coding != "identity":
        said = _("Streams are compressed (%(coding)s).")
        what = said % {"coding": visible(coding[:_LONGEST])}
        line = case.lines(Fault.COMPRESSION)
        yield Finding(rule, Grade.PROBLEM, what, why, line)
    elif len(stream.ticks) < TICKS or not stream.ended:
        said = _("A stream of two seconds did not come to its end.")
        yield Finding(rule, Grade.PROBLEM, said, why, case.lines(Fault.TIMEOUT))
    elif stream.ticks[-1] - stream.ticks[0] < CLOSE_S:
        said = _("Streams are collected on the way, and come all at once.")
        yield Finding(rule, Grade.PROBLEM, said, why, case.lines(Fault.BUFFERING))
    else:
        yield Finding(rule, Grade.GOOD, _("What a stream sends comes at once."))


def _timeout(case: _Case, report: Report) -> Iterator[Finding]:
    reply, rule = case.reply(Probe.SILENCE.value), "time-out"
    if reply is None or is_busy(reply):
        said = _("Whether silent streams stay open takes longer to see.")
        if case.seen.by_browser:
            yield Finding(rule, Grade.UNKNOWN, said, _("Tick the box, and look again."))
        else:
            yield Finding(rule, Grade.UNKNOWN, said, "", "mcp_check --slow")
    elif read_stream(reply).ended:
        yield Finding(rule, Grade.GOOD, _("A stream may be silent for a while."))
    else:
        said = _("A stream that is silent for a while is cut.")
        why = _("Long calls end without their answer.")
        yield Finding(rule, Grade.PROBLEM, said, why, case.lines(Fault.TIMEOUT))


def _body(case: _Case, report: Report) -> Iterator[Finding]:
    reply, rule = case.reply(Probe.BODY.value), "body"
    if reply is None or is_busy(reply):
        yield _not_seen(rule)
        return
    if reply.failure is Failure.LATE or reply.status == 408:  # noqa: PLR2004
        said = _("A large body does not arrive in time: the way is slow.")
        yield Finding(rule, Grade.UNKNOWN, said)
        return
    told, size = read_report(reply), {"size": case.seen.body}
    if told is not None and told.body == case.seen.body:
        said = _("A body of %(size)d bytes arrives.")
        yield Finding(rule, Grade.GOOD, said % size)
        return
    said = _("A body of %(size)d bytes, which the server takes, does not arrive.")
    why = _("Calls with large arguments, such as files, fail.")
    yield Finding(rule, Grade.PROBLEM, said % size, why, case.lines(Fault.BODY))


def _side_by_side(case: _Case, report: Report) -> Iterator[Finding]:
    reply, rule = case.reply(BESIDE), "side by side"
    held = case.reply(Probe.HOLD.value)
    if reply is None or held is None or is_busy(reply) or is_busy(held):
        yield _not_seen(rule)
    elif reply.seconds >= WAIT_S or reply.status == 0:
        said = _("A request waits as long as another one is open.")
        why = _("One client that listens keeps all others out.")
        line = "gunicorn mysite.wsgi --workers 2 --threads 8"
        yield Finding(rule, Grade.PROBLEM, said, why, line)
    else:
        said = _("Requests are served side by side.")
        yield Finding(rule, Grade.GOOD, said)


def _well_known(case: _Case, report: Report) -> Iterator[Finding]:
    """Look at the metadata by which programs find out who issues tokens (RFC 9728)."""
    if not case.site.signs_in:
        return
    reply, rule = case.reply(METADATA), "well-known"
    if reply is None:
        yield _not_seen(rule)
        return
    named = messages_of(reply)[0].get("resource")
    where = {"url": metadata_address(case.seen.url)}
    why = _("Programs cannot find out how to sign in.")
    if not isinstance(named, str) or reply.status != 200:  # noqa: PLR2004
        said = _("There is no metadata at %(url)s, but something else.")
        yield Finding(rule, Grade.PROBLEM, said % where, why)
    elif not _is_same(named, case.seen.url):
        said = _("The metadata at %(url)s is that of %(other)s.")
        other = {**where, "other": visible(named[:_LONGEST])}
        line = public_line(case.seen.url, case.site.slug)
        yield Finding(rule, Grade.PROBLEM, said % other, why, line)
    else:
        yield Finding(rule, Grade.GOOD, _("Programs find out how to sign in."))


def _is_same(resource: str, url: str) -> bool:
    try:
        return canonical(resource) == canonical(url)
    except ValueError:
        return False


def _clocks(case: _Case, report: Report) -> Iterator[Finding]:
    rule = "clocks"
    for reply in case.seen.replies.values():
        told = read_report(reply)
        apart = 0 if told is None else _apart_ms(told, reply)
        if told is not None and apart > APART_MS:
            said = _("The clocks are %(seconds).1f s apart (process %(process)s).")
            named = {"seconds": apart / 1000, "process": visible(told.process)}
            why = _("Tokens end early or late. Let NTP set the clocks.")
            line = "timedatectl set-ntp true"
            yield Finding(rule, Grade.PROBLEM, said % named, why, line)
            return
    yield Finding(rule, Grade.GOOD, _("The clocks agree."))


def _apart_ms(report: Report, reply: Reply) -> int:
    """Return how far the clocks of a process, the database and ours are apart."""
    process, database = report.clock_ms, report.database_ms
    apart = 0 if database is None else abs(database - process)
    if reply.clock_ms:
        # The report may have been on its way for as long as the request took.
        behind = reply.clock_ms - process - int(reply.seconds * 1000)
        apart = max(apart, process - reply.clock_ms, behind)
    return apart


def _not_seen(rule: str) -> Finding:
    return Finding(rule, Grade.UNKNOWN, _("This was not looked at."))


_RULES: Final[tuple[Callable[[_Case, Report], Iterator[Finding]], ...]] = (
    *(_host, _scheme, _peer, _headers, _refusals, _streams, _timeout, _body),
    *(_side_by_side, _well_known, _clocks),
)
