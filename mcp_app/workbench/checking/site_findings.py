"""Checks that this process makes: of settings, rows of processes, the doorbell."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core import checks
from django.db import Error as DatabaseError
from django.db import router
from django.http.request import split_domain_port, validate_host
from django.utils.translation import gettext as _

from mcp_app.account.presentation import lets_sign_in
from mcp_app.auth.connections import allows_sign_in
from mcp_app.auth.resources import oauth_settings, site_origin
from mcp_app.catalog.registry import mcp
from mcp_app.conf import mcp_settings
from mcp_app.egress.callbacks import event_settings
from mcp_app.egress.documents import Bounds, fetch
from mcp_app.egress.resolving import EgressError, TooLarge, Unreadable
from mcp_app.interface.errors import is_installed
from mcp_app.interface.rules import visible
from mcp_app.interface.server import VERSION
from mcp_app.invalidation.doorbell import why_unreachable
from mcp_app.models import EventSubscription, EventType, Server, Stop, Task, Worker
from mcp_app.models.stops import Scope
from mcp_app.models.workers import Report
from mcp_app.process.queues import has_queue
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.negotiation import PREFIX
from mcp_app.protocol.revisions import REVISIONS, Revision
from mcp_app.transports.http.host_and_origin import DEBUG_HOSTS, answered_hosts
from mcp_app.workbench.checking.client import Reply, Request, send_request
from mcp_app.workbench.checking.findings import Finding, Grade
from mcp_app.workbench.checking.judging import Site
from mcp_app.workbench.checking.observing import messages_of

TAG = "mcp"
_MAX_TEXT_LENGTH = 300
DOCUMENTS = "documents"
"""The rule of findings about documents of programs that sign in."""
TRIED_DOCUMENT = "https://claude.ai/oauth/claude-code-client-metadata"
"""The id of a much used program: if its document can be read, so can others."""


def site_at_address(url: str, server: Server) -> Site:
    """Return what the settings say of a server at this address."""
    parts = urlsplit(url)
    domain = split_domain_port(parts.netloc.lower())[0] or str(parts.hostname)
    allowed = [*settings.ALLOWED_HOSTS]
    if settings.DEBUG and not allowed:
        allowed += DEBUG_HOSTS
    return Site(
        slug=server.slug,
        hosts_line=_with_host('MCP["HOSTS"]', domain, answered_hosts()),
        allowed_hosts_line=_with_host("ALLOWED_HOSTS", domain, allowed),
        trusts_proxies=bool(mcp_settings.trusted_proxies),
        body=mcp_settings.limits.body,
        heartbeat=mcp_settings.limits.heartbeat,
        signs_in=site_origin(parts.scheme, parts.netloc) is not None
        and lets_sign_in(server, f"{parts.scheme}://{parts.netloc}"),
    )


def _with_host(setting: str, domain: str, hosts: list[str]) -> str:
    """Return the setting with this host added; "" if it has the host already."""
    if validate_host(domain, hosts):
        return ""
    # This line would remove the hosts that another setting adds.
    return f"{setting} = {json.dumps([*map(str, hosts), domain])}"


def server_findings(server: Server) -> list[Finding]:
    """Return why a server gives clients nothing, and whether new ones can sign in."""
    rule = "server"
    findings = [*_document_findings(server)]
    if server.published_id is None:
        message = _("The server is not published, so clients get 404.")
        why = _("The working copy is for staff alone.")
        return [Finding(rule, Grade.PROBLEM, message, why), *findings]
    stops = [*Stop.objects.on()]
    if any(each.scope == Scope.EVERYTHING or each.holds(server) for each in stops):
        message = _("The server is stopped, so clients get 503.")
        why = _("Whoever may stop and start can start it again.")
        return [Finding(rule, Grade.PROBLEM, message, why, "mcp_stop list"), *findings]
    return findings


def _document_findings(server: Server) -> Iterator[Finding]:
    options = oauth_settings()
    if not (options.documents and is_installed("httpcore2") and allows_sign_in(server)):
        return
    rule, bounds = DOCUMENTS, Bounds(networks=options.networks, ca=options.ca)
    try:
        async_to_sync(fetch)(TRIED_DOCUMENT, bounds, key="a client's document")
    except (TooLarge, Unreadable):
        # Any answer shows that the internet can be reached.
        pass
    except EgressError as error:
        message = _("The document of Claude Code cannot be fetched from here: %(url)s")
        why = _(
            "Programs with a document cannot sign in. Let the site reach the internet,"
            " or let all programs register. The reason: %(error)s"
        )
        what = message % {"url": TRIED_DOCUMENT}
        because = why % {"error": error.message}
        # The line adds to the site's own OAUTH.
        line = 'MCP["OAUTH"] = {**MCP.get("OAUTH", {}), "documents": False}'
        yield Finding(rule, Grade.PROBLEM, what, because, line)
        return
    message = _("Documents of programs that sign in can be fetched.")
    yield Finding(rule, Grade.GOOD, message)


def process_findings() -> list[Finding]:
    """Return the findings about live processes, the settings and the doorbell.

    Processes should run the same code with the same keys.  The findings about settings
    are those of `check --deploy --tag mcp --database`.
    """
    try:
        processes = [*_processes()]
    except DatabaseError as error:
        message = _("The rows of the processes could not be read: %(error)s")
        what = message % {"error": visible(str(error)[:_MAX_TEXT_LENGTH])}
        processes = [Finding("processes", Grade.UNKNOWN, what)]
    return [*processes, *_system_checks(), *_doorbell_findings()]


def _processes() -> Iterator[Finding]:
    rule = "processes"
    live = list(Worker.objects.live())
    reports = [each.report_of_process() for each in live]
    codes = {(each.code, each.release) for each in reports if each.code}
    keys = {report.keys for report in reports if report.keys}
    if len(keys) > 1:
        message = _("Processes have different secret keys.")
        why = _("A session or a state of one means nothing to another.")
        line = _("Give all processes one SECRET_KEY, and restart them.")
        yield Finding(rule, Grade.PROBLEM, message, why, line)
    if len(codes) > 1:
        message = _("Processes run different code.")
        why = _("Clients see now this, now that.")
        line = _("Restart those that run old code.")
        yield Finding(rule, Grade.PROBLEM, message, why, line)
    if not keys or not codes:
        message = _(
            "No process has reported yet which code it runs. It reports this after its"
            " first request."
        )
        yield Finding(rule, Grade.UNKNOWN, message)
    elif len(keys) == len(codes) == 1:
        message = _("All processes run the same code with the same keys: %(count)d.")
        yield Finding(rule, Grade.GOOD, message % {"count": len(live)})
    yield from _task_findings(reports)
    yield from _event_findings(reports)
    if silent := max(0, Worker.objects.count() - len(live)):
        message = _("Processes that have ended without a word: %(count)d.")
        why = _("They were killed, or the machine was. Their rows go by themselves.")
        what = message % {"count": silent}
        yield Finding("silent processes", Grade.ADVICE, what, why)


def _task_findings(reports: Sequence[Report]) -> Iterator[Finding]:
    """Yield a finding if nobody runs tasks that wait (in a queue: wait too long)."""
    tasks = Task.objects.late() if has_queue() else Task.objects.waiting()
    count = tasks.count()
    if count and not any(report.places or report.tasks for report in reports):
        what = _("Tasks wait, and no process runs them: %(count)d.") % {"count": count}
        why = _('MCP["TASKS"] is “%(value)s”.') % {"value": mcp_settings.tasks}
        line = "mcp_worker" if mcp_settings.tasks == "worker" else ""
        yield Finding("tasks", Grade.PROBLEM, what, why, line)


def _event_findings(reports: Sequence[Report]) -> Iterator[Finding]:
    """Yield why nobody can subscribe by webhook, or why subscribers get nothing."""
    rule, rows = "events", EventSubscription.objects
    if mcp.events or EventType.objects.filter(published__isnull=False).exists():
        if not is_installed("httpcore2"):
            line = 'pip install "django-mcp-app[http]"'
            what = _("The site cannot post events to clients.")
            yield Finding(rule, Grade.ADVICE, what, line=line)
        if not (mcp_settings.public_url or "").startswith("https:"):
            what = _('ChatGPT subscribes only if MCP["PUBLIC_URL"] begins with https.')
            yield Finding(rule, Grade.ADVICE, what)
    deliver = event_settings().deliver
    idle = deliver == "worker" and not any(report.delivers for report in reports)
    if count := (rows.living() if idle else rows.late()).count():
        what = _("Nobody delivers events to subscriptions: %(count)d.")
        why = _('MCP["EVENTS"]["deliver"] is “%(value)s”.') % {"value": deliver}
        line = "mcp_worker" if deliver == "worker" else ""
        yield Finding(rule, Grade.PROBLEM, what % {"count": count}, why, line)
    if count := rows.failing().count():
        what = _("Subscriptions whose receiver has failed for an hour: %(count)d.")
        yield Finding(rule, Grade.ADVICE, what % {"count": count})


def _system_checks() -> Iterator[Finding]:
    messages = checks.run_checks(
        tags=[TAG],
        include_deployment_checks=True,
        databases=[router.db_for_write(Server)],
    )
    reported = [message for message in messages if not message.is_silenced()]
    for each in reported:
        grade = Grade.PROBLEM if each.is_serious() else Grade.ADVICE
        # The text is not cut: the line to change may be at its end.
        what, why = visible(str(each.msg), None), visible(each.hint or "", None)
        yield Finding(str(each.id or "check"), grade, what, why)
    if not reported:
        yield Finding("check", Grade.GOOD, _("The settings are as they should be."))


def _doorbell_findings() -> Iterator[Finding]:
    if why := async_to_sync(why_unreachable)(mcp_settings.doorbell):
        message = _("The doorbell cannot be reached: %(error)s")
        what = message % {"error": visible(why[:_MAX_TEXT_LENGTH])}
        meant = _("Changes arrive a moment later in other processes.")
        yield Finding("doorbell", Grade.PROBLEM, what, meant)


# -- revisions -------------------------------------------------------------------------
# A short conversation in each revision: does it begin, list, and open a stream?
#
# No tool is called.  Each session that was opened is closed again.

CLIENT: Final = {"name": "mcp_check", "version": VERSION}
LISTS: Final = ("tools", "resources", "prompts")
"""Capabilities with a list; the list of the first one that is offered is read."""
STREAM: Final = "a stream"
"""Stands for the method of a step that only opens a stream."""
_JSON: Final = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a conversation, and its reply; `result` is None if it failed."""

    revision: str
    method: str
    reply: Reply
    result: JsonObject | None


@dataclass(frozen=True, slots=True)
class Conversations:
    """Speaks to one server; `shown` are headers with the credential, if any."""

    url: str
    tls: ssl.SSLContext
    shown: Mapping[str, str] = field(default_factory=dict, repr=False)
    streams: bool = True

    def run_each_revision(self) -> list[Step]:
        """Speak in each revision, the newest last; blocks."""
        steps: list[Step] = []
        for revision in REVISIONS.values():
            speak = self._in_session if revision.sessions else self._without_session
            steps += speak(revision)
        return steps

    def _in_session(self, revision: Revision) -> Iterator[Step]:
        params = {
            "protocolVersion": revision.version,
            "capabilities": {},
            "clientInfo": CLIENT,
        }
        opened = self._run_one_step(revision, "initialize", params, {})
        yield opened
        session = opened.reply.headers.get("mcp-session-id")
        if opened.result is None or session is None:
            return
        headers = {"Mcp-Session-Id": session}
        if revision.version_header:
            headers["MCP-Protocol-Version"] = revision.version
        self._send_message(
            headers, {"jsonrpc": "2.0", "method": "notifications/initialized"}
        )
        yield self._run_one_step(revision, "ping", {}, headers)
        yield from self._list_first_capability(revision, opened, {}, headers)
        if self.streams:
            events = {**headers, "Accept": "text/event-stream"}
            reply = self._send_message(events, None, "GET", first=True)
            yield _stream_step(revision, reply)
        self._send_message(headers, None, "DELETE")

    def _without_session(self, revision: Revision) -> Iterator[Step]:
        meta = {
            f"{PREFIX}protocolVersion": revision.version,
            f"{PREFIX}clientInfo": CLIENT,
            f"{PREFIX}clientCapabilities": {},
        }
        headers = {"MCP-Protocol-Version": revision.version}
        params = {"_meta": meta}
        discovery = self._run_one_step(revision, "server/discover", params, headers)
        yield discovery
        if discovery.result is None:
            return
        yield from self._list_first_capability(revision, discovery, params, headers)
        if self.streams:
            method = "subscriptions/listen"
            listening = {**params, "notifications": {"toolsListChanged": True}}
            headers = {**headers, "Mcp-Method": method}
            reply = self._send_message(
                headers, _jsonrpc_request(method, listening), first=True
            )
            yield _stream_step(revision, reply)

    def _list_first_capability(
        self,
        revision: Revision,
        begun: Step,
        params: JsonObject,
        headers: Mapping[str, str],
    ) -> Iterator[Step]:
        offered = (begun.result or {}).get("capabilities") or {}
        for each in LISTS:
            if each in offered:
                yield self._run_one_step(revision, f"{each}/list", params, headers)
                return

    def _run_one_step(
        self,
        revision: Revision,
        method: str,
        params: JsonObject,
        headers: Mapping[str, str],
    ) -> Step:
        headers = {**headers, "Mcp-Method": method} if revision.stateless else headers
        reply = self._send_message(headers, _jsonrpc_request(method, params))
        results = [
            each["result"]
            for each in messages_of(reply)
            if isinstance(each.get("result"), dict)
        ]
        return Step(revision.version, method, reply, results[0] if results else None)

    def _send_message(
        self,
        headers: Mapping[str, str],
        message: JsonObject | None,
        method: str = "POST",
        *,
        first: bool = False,
    ) -> Reply:
        body = b"" if message is None else jsonrpc.write(message)
        all_headers = {**_JSON, **headers, **self.shown}
        request = Request(self.url, all_headers, body, method=method, first=first)
        return send_request(request, self.tls)


def _jsonrpc_request(method: str, params: JsonObject) -> JsonObject:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _stream_step(revision: Revision, reply: Reply) -> Step:
    kind = reply.headers.get("content-type", "")
    fine = reply.status == HTTPStatus.OK and kind.startswith("text/event-stream")
    return Step(revision.version, STREAM, reply, {} if fine else None)


def judge_revisions(steps: Sequence[Step], *, has_token: bool = False) -> list[Finding]:
    """Return one finding for each step that failed, or one that all is well."""
    rule = "revisions"
    failed = [step for step in steps if step.result is None]
    statuses = {each.reply.status for each in failed}
    if HTTPStatus.UNAUTHORIZED in statuses and has_token:
        message = _("The server does not accept the token, so nothing was tried.")
        why = _(
            "The token has expired, or it is for other servers or networks, or the"
            " server accepts no access tokens."
        )
    elif HTTPStatus.UNAUTHORIZED in statuses:
        message = _("The server asks who is calling, so nothing was tried.")
        why = _("Name a user with --user, or put a token into MCP_TOKEN.")
    elif HTTPStatus.TOO_MANY_REQUESTS in statuses:
        message = _("The server refused some requests of clients as too many at once.")
        why = _("Its rates may be low, or others call as the same person. Try again.")
    elif failed:
        return [_failure_finding(each) for each in failed]
    else:
        message = _("Clients of these revisions are served: %(versions)s.")
        versions = ", ".join(dict.fromkeys(step.revision for step in steps))
        return [Finding(rule, Grade.GOOD, message % {"versions": versions})]
    return [Finding(rule, Grade.UNKNOWN, message, why)]


def _failure_finding(step: Step) -> Finding:
    message = _(
        "In revision %(version)s, %(method)s failed (status %(status)d): %(text)s"
    )
    errors = [each.get("error") for each in messages_of(step.reply)]
    messages = [error.get("message") for error in errors if isinstance(error, dict)]
    text = str(messages[0]) if messages else step.reply.detail or step.reply.text
    values = {
        "version": step.revision,
        "method": step.method,
        "status": step.reply.status,
        "text": visible(text[:200]),
    }
    why = _("Clients that speak this revision cannot use the server.")
    return Finding("revisions", Grade.PROBLEM, message % values, why)
