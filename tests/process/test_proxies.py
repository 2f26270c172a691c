"""`mcp_check` names what a proxy does to a site, and its lines mend it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Final

import pytest
from django.core.management import call_command
from pytest_django import Settings

from mcp_app.protocol.revisions import REVISIONS
from tests.drill.running import DrillServer
from tests.marks import long_cases
from tests.process.certificates import write_certificate
from tests.process.nginx import Nginx, replaced
from tests.process.programs import program, serving
from tests.process.proxies import Apache, HaProxy, Proxy

pytestmark = [pytest.mark.django_db, pytest.mark.programs]

LIMITS: Final = {"heartbeat": 1}
KEY: Final = "a key of the site behind the proxy, for tests: 0123456789"
ENVIRONMENT: Final = {
    "MCP_LIMITS": json.dumps(LIMITS),
    "MCP_TRUSTED_PROXIES": "1",
    "SECRET_KEY": KEY,
}
HEALTHY_RUNS: Final = int(os.environ.get("HEALTHY_RUNS", "2"))
MCP_LOCATION: Final = "    location /mcp {\n"
Findings = dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def server() -> Iterator[DrillServer]:
    with serving("uvicorn", ENVIRONMENT) as running:
        yield running


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_certificate(tmp_path_factory.mktemp("tls") / "site.pem")


@pytest.fixture(scope="module")
def nginx(
    server: DrillServer, certificate: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Nginx]:
    folder = tmp_path_factory.mktemp("nginx")
    running = Nginx(folder, server.port, {}, certificate)
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def _site(settings: Settings) -> None:
    settings.SECRET_KEY = KEY
    settings.ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
    settings.MCP = {"TRUSTED_PROXIES": 1, "LIMITS": LIMITS}


def checked(url: str, certificate: Path, *options: str) -> tuple[int, Findings]:
    told, status = StringIO(), 0
    try:
        call_command(
            *("mcp_check", url, "--ca", str(certificate), "--json", *options),
            stdout=told,
        )
    except SystemExit as end:
        status = int(str(end.code))
    return status, worst(json.loads(told.getvalue()))


def worst(findings: list[dict[str, str]]) -> Findings:
    found: Findings = {}
    for each in findings:
        if found.get(each["rule"], {}).get("grade") != "problem":
            found[each["rule"]] = each
    return found


def problems(found: Findings) -> list[str]:
    return [rule for rule, each in found.items() if each["grade"] == "problem"]


def inside(text: str, line: str) -> str:
    return replaced(text, {MCP_LOCATION: f"{MCP_LOCATION}        {line}\n"})


def without(text: str, line: str) -> str:
    before, location, after = text.partition(MCP_LOCATION)
    assert line in after
    return before + location + after.replace(line, "", 1)


def test_a_healthy_site(nginx: Nginx, certificate: Path) -> None:
    nginx.reconfigure(lambda text: text)
    status, found = checked(nginx.url, certificate, "--slow")
    assert not problems(found), found
    assert status == 0
    for rule in (
        *("address", "redirect", "ours", "host", "scheme", "client address", "headers"),
        *("refusals", "streams", "time-out", "body", "clocks", "side by side"),
    ):
        assert found[rule]["grade"] == "good"
    for version in REVISIONS:
        assert version in found["revisions"]["what"]


FAULTS: Final[dict[str, tuple[str, Callable[[str], str]]]] = {
    "host": ("host", lambda text: without(text, "proxy_set_header Host $http_host;")),
    "scheme": (
        "scheme",
        lambda text: without(text, "proxy_set_header X-Forwarded-Proto $scheme;"),
    ),
    "address": (
        "client address",
        lambda text: without(
            text, "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;"
        ),
    ),
    "error pages": (
        "refusals",
        lambda text: inside(text, "error_page 401 /401;").replace(
            "    location / {",
            "    proxy_intercept_errors on;\n"
            "    location = /401 { internal; return 404; }\n    location / {",
        ),
    ),
    "buffering": (
        "streams",
        lambda text: inside(
            without(text, "proxy_buffering off;"),
            "proxy_ignore_headers X-Accel-Buffering;",
        ),
    ),
    "body": ("body", lambda text: text.replace("client_max_body_size 4m;", "")),
    "time-out": (
        "time-out",
        lambda text: without(text, "proxy_read_timeout 120s;").replace(
            "client_max_body_size", "proxy_read_timeout 2s; client_max_body_size"
        ),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_its_line_mends_it(nginx: Nginx, certificate: Path, fault: str) -> None:
    mends(nginx, certificate, fault)


def mends(nginx: Nginx, certificate: Path, fault: str) -> None:
    rule, plant = FAULTS[fault]
    options = ["--slow"] if fault == "time-out" else []
    nginx.reconfigure(plant)
    status, found = checked(nginx.url, certificate, *options)
    if rule == "streams" and found[rule]["grade"] == "unknown":
        # Under WSGI there are none.
        return
    assert problems(found) == [rule]
    assert status == 1
    line = found[rule]["line"]
    nginx.reconfigure(lambda text: inside(plant(text), line))
    status, found = checked(nginx.url, certificate, *options)
    assert not problems(found), found
    assert status == 0


def test_lines_to_take_out(nginx: Nginx, certificate: Path) -> None:
    """Headers that are lost: each is named with the line that removes it."""
    lines = [
        'proxy_set_header Authorization "";',
        'proxy_set_header Mcp-Session-Id "";',
    ]
    nginx.reconfigure(lambda text: inside(text, "\n".join(lines)))
    told = StringIO()
    with suppress(SystemExit):
        call_command("mcp_check", nginx.url, "--ca", str(certificate), stdout=told)
    assert [f"    > {line}" for line in lines] == [
        each for each in told.getvalue().splitlines() if "proxy_set_header" in each
    ]
    assert "The header Authorization does not arrive as it was sent." in told.getvalue()


def test_what_is_not_there(nginx: Nginx, certificate: Path) -> None:
    page = "default_type text/html; return 200 '<h1>Hi</h1>';"
    nginx.reconfigure(lambda text: inside(text, page))
    status, found = checked(nginx.url, certificate)
    assert (status, problems(found)) == (1, ["ours"])
    assert "text/html" in found["ours"]["what"]

    slash = "    location = /mcp { return 308 /mcp/; }\n"
    nginx.reconfigure(
        lambda text: replaced(text, {MCP_LOCATION: f"{slash}{MCP_LOCATION}"})
    )
    status, found = checked(nginx.url, certificate)
    assert (status, problems(found)) == (1, ["redirect"])
    # The site writes its address without the slash, whatever PUBLIC_URL says.
    assert found["redirect"]["line"] == ""


def test_redirects_of_others(nginx: Nginx, certificate: Path, tmp_path: Path) -> None:
    login = "    location = /mcp { return 302 /accounts/login/?next=/mcp; }\n"
    nginx.reconfigure(
        lambda text: replaced(text, {MCP_LOCATION: f"{login}{MCP_LOCATION}"})
    )
    status, found = checked(nginx.url, certificate)
    assert (status, problems(found)) == (1, ["redirect"])
    assert not found["redirect"]["line"]
    plain = Nginx(tmp_path, nginx.port, {})
    try:
        plain.reconfigure(lambda text: inside(text, f"return 301 {nginx.url};"))
        status, found = checked(plain.url, certificate)
    finally:
        plain.stop()
    assert (status, problems(found)) == (1, ["redirect"])
    assert found["redirect"]["line"] == f'MCP["PUBLIC_URL"] = "{nginx.url}"'


def test_other_keys(nginx: Nginx, certificate: Path, settings: Settings) -> None:
    nginx.reconfigure(lambda text: text)
    settings.SECRET_KEY = "a key of another site, which the server does not know"
    status, found = checked(nginx.url, certificate)
    assert (status, problems(found)) == (1, ["ours"])
    assert "other secret keys" in found["ours"]["why"]


def test_certificates(nginx: Nginx, certificate: Path, tmp_path: Path) -> None:
    other = write_certificate(tmp_path / "other.pem")
    status, found = checked(nginx.url, other)
    assert (status, problems(found)) == (2, ["address"])
    assert "self-signed" in found["address"]["why"].replace(" ", "-")
    over = write_certificate(tmp_path / "over.pem", days=-1)
    nginx.reconfigure(lambda text: text.replace(str(certificate), str(over)))
    status, found = checked(nginx.url, over)
    assert (status, problems(found)) == (2, ["address"])
    assert "expired" in found["address"]["why"]


# -- every server behind every proxy ------------------------------------------------


@pytest.fixture(scope="module", params=long_cases("uvicorn", "gunicorn", "daphne"))
def upstream(request: pytest.FixtureRequest) -> Iterator[int]:
    """The port of four workers of uvicorn, of gunicorn with threads, or of daphne."""
    if request.param == "uvicorn":
        with program("uvicorn", ENVIRONMENT, "--workers", "4") as workers:
            yield workers.port
        return
    with serving(request.param, ENVIRONMENT) as running:
        yield running.port


@pytest.fixture(scope="module", params=[Apache, HaProxy])
def proxy(
    request: pytest.FixtureRequest,
    upstream: int,
    certificate: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("proxy")
    running: Proxy = request.param(folder, upstream, certificate)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def any_nginx(
    upstream: int, certificate: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Nginx]:
    running = Nginx(tmp_path_factory.mktemp("nginx"), upstream, {}, certificate)
    yield running
    running.stop()


def stays_healthy(site: Proxy | Nginx, certificate: Path) -> None:
    site.reconfigure(lambda text: text)
    for options in (["--slow"], *[[]] * (HEALTHY_RUNS - 1)):
        status, found = checked(site.url, certificate, *options)
        assert (status, problems(found)) == (0, []), found


def test_healthy_sites(proxy: Proxy, certificate: Path) -> None:
    stays_healthy(proxy, certificate)


def test_healthy_behind_nginx(any_nginx: Nginx, certificate: Path) -> None:
    stays_healthy(any_nginx, certificate)


@pytest.mark.parametrize("fault", FAULTS)
def test_nginx_at_any_server(any_nginx: Nginx, certificate: Path, fault: str) -> None:
    mends(any_nginx, certificate, fault)


OTHERS: Final[dict[str, dict[str, dict[str, str]]]] = {
    "Apache": {
        "host": {"ProxyPreserveHost On": ""},
        "scheme": {"RequestHeader set X-Forwarded-Proto expr=%{REQUEST_SCHEME}": ""},
        "client address": {
            "ProxyPreserveHost On": "ProxyPreserveHost On\nProxyAddHeaders Off"
        },
        "refusals": {"SSLEngine on": "SSLEngine on\nProxyErrorOverride On"},
        "streams": {"SSLEngine on": "SSLEngine on\nSetOutputFilter DEFLATE"},
        "time-out": {"ProxyTimeout 120": "ProxyTimeout 2"},
    },
    "HAProxy": {
        "host": {
            "option forwardfor": "option forwardfor\nhttp-request set-header Host x"
        },
        "scheme": {
            "http-request set-header X-Forwarded-Proto https if { ssl_fc }": "",
        },
        "client address": {"option forwardfor": ""},
        "time-out": {"timeout server 120s": "timeout server 2s"},
    },
}
REMOVING: Final = {
    "Apache": "RequestHeader unset Mcp-Session-Id",
    "HAProxy": "http-request del-header Mcp-Session-Id",
}


@pytest.mark.parametrize("rule", sorted({*OTHERS["Apache"], *OTHERS["HAProxy"]}))
def test_lines_of_other_proxies(proxy: Proxy, certificate: Path, rule: str) -> None:
    changed = OTHERS[proxy.name].get(rule)
    if changed is None:
        return
    options = ["--slow"] if rule == "time-out" else []
    proxy.reconfigure(lambda text: replaced(text, changed))
    _, found = checked(proxy.url, certificate, *options)
    if rule == "streams" and found[rule]["grade"] == "unknown":
        # Under WSGI there are none.
        return
    assert problems(found) == [rule], found
    line = line_of(proxy, found[rule]["line"])
    proxy.reconfigure(lambda text: proxy.inside(replaced(text, changed), line))
    status, found = checked(proxy.url, certificate, *options)
    assert (status, problems(found)) == (0, []), found


def test_lines_of_other_proxies_to_take_out(proxy: Proxy, certificate: Path) -> None:
    removing = REMOVING[proxy.name]
    proxy.reconfigure(lambda text: proxy.inside(text, removing))
    _, found = checked(proxy.url, certificate)
    assert found["headers"]["grade"] == "problem"
    assert line_of(proxy, found["headers"]["line"]) == removing


def line_of(proxy: Proxy, lines: str) -> str:
    named = f"{proxy.name}: "
    own = [each.removeprefix(named) for each in lines.splitlines() if named in each]
    return own[0] if own else lines
