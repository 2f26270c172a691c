"""Uses the other site as staff with a browser, as an operator and as a client do."""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from html import unescape
from io import StringIO
from itertools import count
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import resolve

from mcp_app.egress.sites import usable_sites
from mcp_app.models import Call, Prompt, Resource, ResourceTemplate, Server, Tool
from mcp_app.process import freshness
from mcp_app.publishing.openapi import store
from mcp_app.transports.http import replies
from tests.admin.pages import fill_in_again
from tests.oauth.program import Program, sign_in
from tests.othersite.models import Person
from tests.othersite.urls import site
from tests.published import published, stopped

PATIENCE_S: Final = 60.0
LINK: Final = re.compile(r'\s(?:href|action|formaction)="([^"#]+)')
SENT: Final = re.compile("(?<!session)_(add|change|connect|publish|replace|try|who)$")
"""Pages whose forms are sent as they are."""
OF_EACH_TOOL: Final = ("_tool_change", "_tool_history")
VERSION: Final = "2025-11-25"
DAY: Final = "2026-11-18"
BEGINS: Final = f"{DAY}T06:00:00"
BLOCK: Final = {"type": "text", "text": "a text"}
FIELDS: Final = ["begins", "at", "lasts", "wage"]
SHIFTS: Final = {"model": "othersite.Shift", "fields": FIELDS}
TOOLS: Final[dict[str, tuple[str, Any]]] = {
    "text": ("text", {"content": [BLOCK]}),
    "peer": ("http", {"site": "peer", "path": "/x"}),
    "shifts": (
        "query",
        {
            **SHIFTS,
            "filters": [
                {"path": "begins", "lookup": "gte", "parameter": "since"},
                {"path": "at", "lookup": "exact", "parameter": "at"},
            ],
        },
    ),
    "weeks": (
        "query",
        {
            "model": "othersite.Shift",
            "answer": "groups",
            "group_by": [{"path": "begins", "unit": "week"}],
            "measures": [{"aggregate": "max", "path": "begins", "name": "last"}],
        },
    ),
}
OF_A_DAY: Final = [{"path": "day", "lookup": "exact", "parameter": "day"}]
DOCUMENT: Final = {
    "openapi": "3.0.3",
    "info": {"title": "Peer", "version": "1"},
    "paths": {"/x": {"get": {"responses": {"200": {"description": "Fine."}}}}},
}

_ids = count()


def main() -> None:
    call_command("migrate", run_syncdb=True, verbosity=0, interactive=False)
    # A machine that stands still for a moment changes no answer.
    freshness.TIMEOUT, replies.PROMOTE_AFTER = PATIENCE_S, PATIENCE_S / 2
    rights = {"is_staff": True, "is_superuser": True}
    ada: Any = Person.objects.create(email="ada@example.com", **rights)
    staff = Client(raise_request_exception=False)
    staff.force_login(ada)
    publish_definitions()
    who = (ada.email, "a laptop", "--change")
    caller = Caller(print_of("new", *who, "--expires-in", "90d"))
    sign_in(Program(Client()), staff)
    answers = caller.answers()
    while not Call._default_manager.exists():
        # Rows of calls are written a moment later.
        time.sleep(0.05)
    opened, failures = crawl(staff, "/backoffice/", "/tokens/")
    report = {
        "answers": answers,
        "missed": sorted(names_of(site.urls[0]) - opened),
        "failures": failures,
        "tokens": print_of("list"),
        "nobody": print_of("new", "root", "a laptop"),
    }
    json.dump(report, sys.stdout)


def print_of(*arguments: str) -> str:
    printed = StringIO()
    try:
        call_command("mcp_token", *arguments, stdout=printed, stderr=StringIO())
    except CommandError as error:
        return str(error)
    return printed.getvalue().strip()


def publish_definitions() -> None:
    for name, (kind, config) in TOOLS.items():
        row = published(Tool(name=name, kind=kind, config=json.dumps(config)))
    row.title = "Weeks"
    published(row)
    stopped(published(Tool(name="off", config=json.dumps({"content": [BLOCK]}))))
    text, one = {"text": "a"}, {**SHIFTS, "answer": "one", "filters": OF_A_DAY}
    hello = {"messages": [{"role": "user", "content": BLOCK}]}
    published(Resource(name="text", uri="text://a", config=json.dumps(text)))
    query: Any = {"kind": "query", "config": json.dumps(one)}
    published(ResourceTemplate(name="one", uri_template="day://{day}", **query))
    published(Prompt(name="hello", config=json.dumps(hello)))
    published(Server(slug="support", title="Support", access="oauth token"))
    store(json.dumps(DOCUMENT).encode(), usable_sites()["peer"])


class Caller:
    def __init__(self, token: str) -> None:
        self._http = Client(headers={"host": "shop.example.com"})
        self._headers = {
            "authorization": f"Bearer {token}",
            "accept": "application/json, text/event-stream",
        }
        client = {"name": "a client", "version": "1"}
        about = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client}
        session = self._post("initialize", about)["Mcp-Session-Id"]
        more = {"mcp-session-id": session, "mcp-protocol-version": VERSION}
        self._headers |= more

    def answers(self) -> dict[str, Any]:
        times = {"moment": BEGINS, "day": DAY, "time": "09:30", "span": "-PT1.5S"}
        prompt = self._ask("prompts/get", name="roster", arguments={"day": DAY})
        return {
            "function": self._call("times", **times),
            "a row": self._call("plan", begins=BEGINS, wage="1234.50"),
            "query": self._call("shifts", since=BEGINS, at="06:00"),
            "groups": self._call("weeks"),
            "text": self._call("text"),
            "http": self._call("peer"),
            "one": self._read(f"day://{DAY}"),
            "resource": self._read("shift://1"),
            "prompt": prompt["messages"][0]["content"]["text"],
        }

    def _call(self, name: str, **arguments: object) -> Any:
        result = self._ask("tools/call", name=name, arguments=arguments)
        return result.get("structuredContent") or result["content"][0]["text"]

    def _read(self, uri: str) -> Any:
        return json.loads(self._ask("resources/read", uri=uri)["contents"][0]["text"])

    def _ask(self, method: str, **params: object) -> Any:
        return self._post(method, params).json()["result"]

    def _post(self, method: str, params: object) -> Any:
        message = {"id": next(_ids), "method": method, "params": params}
        return self._http.post(
            "/mcp",
            {"jsonrpc": "2.0", **message},
            content_type="application/json",
            headers=self._headers,
        )


def names_of(patterns: Any) -> set[str]:
    """Return the names of all pages of the app in an admin."""
    names = {each.name for each in patterns if getattr(each, "name", None)}
    below = [names_of(getattr(each, "url_patterns", [])) for each in patterns]
    ours = {each for each in names if each.startswith("mcp_app_")}
    return ours.union(*below)


def links_of(page: Any, address: str) -> list[str]:
    is_html = page.get("Content-Type", "").startswith("text/html")
    found = LINK.findall(page.content.decode()) if is_html else ()
    return [urljoin(address, unescape(each)) for each in found]


def crawl(staff: Client, *start: str) -> tuple[set[str], dict[str, str]]:
    """Open what links lead to: each page once, and some for each tool.

    Send their forms as they are.  Return the names of the pages, and what failed.
    """
    opened, failures = Counter[str](), dict[str, str]()
    waiting, known = [*start], {*start}
    # The list grows while it is read.
    for address in waiting:
        name = resolve(urlsplit(address).path).view_name
        opened[name] += 1
        if opened[name] > 1 and ("?" in address or not name.endswith(OF_EACH_TOOL)):
            continue
        page: Any = staff.get(address)
        answers = {"": page}
        links = {each for each in links_of(page, address) if each.startswith(start)}
        waiting += sorted(links - known)
        known |= links
        if SENT.search(name) and "?" not in address:
            answers[" sent"] = fill_in_again(staff, address, page)
        for how, answer in answers.items():
            # What wants a POST refuses a GET.
            if answer.status_code >= 400 and answer.status_code not in (403, 405):
                error = (answer.exc_info or (None, answer))[1]
                failures[f"{name}{how}"] = f"{address}: {error!r}"
    return {each.partition(":")[2] for each in opened}, failures
