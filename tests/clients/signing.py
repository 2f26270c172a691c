"""A server that programs sign in to, and a person who lets them in, without a browser.

The person opens the address that a program shows, logs in, presses *Allow*, and is led
back to the program: the same forms and links as a browser would take.
"""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2

from tests.drill.piped import database, environment
from tests.drill.running import ROOT, THERE, running
from tests.process.operating import Operator

USER: Final = "kim"
PASSWORD: Final = "a-Long-enough-1"
WAYS: Final = {
    "oauth": "mcp_app.authentication.oauth",
    "token": "mcp_app.authentication.access_token",
}
SITE: Final = {"DEBUG": "true", "MCP_AUTHENTICATION": json.dumps(WAYS)}
"""On loopback and with DEBUG a site needs no public address."""
PREPARE: Final = f"""
import django
django.setup()
from django.contrib.auth.models import User
from mcp_app.models import Server
from tests.published import published
User.objects.create_user("{USER}", password="{PASSWORD}")
published(Server(slug="signed", access="oauth token"))
"""

_INPUT: Final = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')
_REFRESH: Final = re.compile(r'http-equiv="refresh" content="0;url=([^"]+)"')


@dataclass(frozen=True, slots=True)
class Site:
    """Where the server is, and who runs it."""

    url: str
    operator: Operator

    def ends(self, name: str) -> None:
        """Return when programs of this name are let in no more."""
        listed = self.operator.types("mcp_token", "list", "--apps")
        found = re.findall(rf"^(app_\w+) +{re.escape(name)}  ", listed, re.MULTILINE)
        assert found, listed
        for handle in found:
            self.operator.types("mcp_token", "revoke", handle)


@contextmanager
def site(directory: Path, server: str = "uvicorn") -> Iterator[Site]:
    """Run a site with a database of its own."""
    env = environment(database(directory), **SITE)
    subprocess.run([sys.executable, "-c", PREPARE], cwd=ROOT, env=env, check=True)
    given = {"DATABASE_URL": env["DATABASE_URL"], **SITE, **THERE}
    with running(server, given) as url, closing(Operator(given)) as operator:
        yield Site(f"{url}/signed", operator)


def let_in(address: str, **choices: str) -> dict[str, str]:
    """Let the program in whose address this is; return what it is sent."""
    with httpx2.Client(follow_redirects=True) as browser:
        page = browser.get(address)
        page = _sent(browser, page, username=USER, password=PASSWORD)
        page = _sent(browser, page, **{"may": "change", "ends": "90", **choices})
    match = _REFRESH.search(page.text)
    assert match, page.text
    query = parse_qs(urlsplit(html.unescape(match[1])).query)
    return {name: values[0] for name, values in query.items()}


def _sent(
    browser: httpx2.Client, page: httpx2.Response, **typed: str
) -> httpx2.Response:
    """Fill in the last form of a page and send it."""
    form = page.text[page.text.rindex("<form") :]
    action = re.search(r'^<form[^>]* action="([^"]*)"', form)
    target = urljoin(str(page.url), html.unescape(action[1]) if action else "")
    hidden = {name: html.unescape(value) for name, value in _INPUT.findall(form)}
    return browser.post(target, data={**hidden, **typed})
