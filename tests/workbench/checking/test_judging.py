"""Each fault is named by one rule, with its line; of a healthy site nothing is said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from mcp_app.transports.http.probe import Probe
from mcp_app.workbench.checking.client import Failure, Part, Reply
from mcp_app.workbench.checking.findings import Finding, Grade
from mcp_app.workbench.checking.judging import Site, has_answer, judge_observations
from mcp_app.workbench.checking.observing import (
    BESIDE,
    METADATA,
    SLASH,
    Observations,
    observations_of_page,
)
from tests.workbench.checking.test_observing import REPORT, STREAM, event

URL: Final = "https://mcp.example.com/mcp"
SITE: Final = Site(trusts_proxies=True, body=4_000)
ARRIVED: Final[dict[str, Any]] = {
    **REPORT,
    "host": "mcp.example.com",
    "forwarded": {"x-forwarded-for": "192.0.2.1", "x-forwarded-proto": "https"},
    "body": 4_000,
    "database_ms": 1_000,
}
NGINX: Final = {"server": "nginx/1.22"}
MCP_ERROR: Final = '{"jsonrpc":"2.0","id":1,"error":{}}'
Replies = Mapping[str, Reply]


def stream(step: float = 0.25, **changes: Any) -> Reply:
    events = [{**ARRIVED, **changes}, *({"tick": n} for n in range(5)), {"end": True}]
    parts = (Part(n * step, event(each)) for n, each in enumerate(events))
    return Reply(200, {**STREAM, **NGINX}, tuple(parts), 2.0)


def whole(text: str = "", status: int = 200, **headers: str) -> Reply:
    return Reply(status, {**NGINX, **headers}, (Part(0.1, text),), 0.1)


def report(**changes: Any) -> Reply:
    return whole(json.dumps({**ARRIVED, **changes}))


CHALLENGE: Final = {"www-authenticate": 'Bearer realm="mcp"'}
HEALTHY: Final[Replies] = {
    "ticks": stream(),
    SLASH: report(),
    "refusal": whole(json.dumps(ARRIVED), 401, **CHALLENGE),
    "body": report(),
    BESIDE: report(),
    "hold": stream(),
    "silence": stream(),
}


def judged(
    replies: Replies = HEALTHY, site: Site = SITE, url: str = URL
) -> list[Finding]:
    return judge_observations(Observations(url, {**HEALTHY, **replies}, 4_000), site)


def bad(findings: list[Finding]) -> list[tuple[str, str]]:
    wrong = [each for each in findings if each.grade is Grade.PROBLEM]
    assert all(each.what for each in findings)
    return [(each.rule, each.line) for each in wrong]


def as_script_sends_it(replies: Replies) -> dict[str, Any]:
    """Return what the script of the page *Check* sends of these answers."""
    return {
        name: {
            "status": reply.status,
            "headers": dict(reply.headers),
            "parts": [[each.at, each.text] for each in reply.parts],
            "seconds": reply.seconds,
            **({} if reply.failure is None else {"failure": reply.failure.value}),
        }
        for name, reply in replies.items()
    }


def test_a_healthy_site() -> None:
    found = judged()
    assert {each.grade for each in found} == {Grade.GOOD}
    assert len({each.rule for each in found}) == len(found) == 13


def test_what_was_not_looked_at() -> None:
    found = judge_observations(Observations(URL, {"ticks": stream()}), SITE)
    unknown = [each.rule for each in found if each.grade is Grade.UNKNOWN]
    assert unknown == ["refusals", "time-out", "body", "side by side"]
    assert not bad(found)
    busy = whole('{"mcp_probe":1,"busy":true}', 429)
    for beside in (BESIDE, "hold"):
        again = judged(dict.fromkeys(("refusal", "body", beside, "silence"), busy))
        assert [each.rule for each in again if each.grade is Grade.UNKNOWN] == unknown
    assert [each.grade for each in judged({"ticks": busy})][2:] == [Grade.UNKNOWN]


def test_a_port_that_is_lost() -> None:
    """A form of the admin comes from an address that Django does not know."""
    line = "proxy_set_header Host $http_host;"
    host = "mcp.example.com"
    beside = f"https://{host}:8443/mcp"
    at_port = {"ticks": stream(host=f"{host}:8443")}
    assert bad(judged({"ticks": stream(host=host)}, url=beside)) == [("host", line)]
    assert not bad(judged(at_port, url=beside))
    assert bad(judged(at_port)) == [("host", line)]
    # The usual port may be told or not.
    assert not bad(judged({"ticks": stream(host=f"{host}:443")}))
    assert bad(judged({"ticks": stream(host=f"{host}:x")})) == [("host", line)]


HOST_LINE: Final = "proxy_set_header Host $http_host;"
SCHEME_LINE: Final = "proxy_set_header X-Forwarded-Proto $scheme;"
CLIENT_LINE: Final = "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;"
TIMEOUT_LINE: Final = "proxy_read_timeout 120s;"
REFUSAL_LINE: Final = "proxy_intercept_errors off;"
CLOCK_LINE: Final = "timedatectl set-ntp true"
SERVER_LINE: Final = "gunicorn mysite.wsgi --workers 2 --threads 8"
ALONE: Final = {name: {name: value} for name, value in ARRIVED["forwarded"].items()}
PACKED: Final = replace(
    stream(), headers={**stream().headers, "content-encoding": "gzip"}
)
CUT: Final = replace(stream(), parts=stream().parts[:1], failure=Failure.CUT)
NO_NAME: Final = stream(headers={**ARRIVED["headers"], "Mcp-Name": "lost"})
FAULTS: Final[list[tuple[Replies, str, str]]] = [
    ({"ticks": stream(host="up")}, "host", HOST_LINE),
    ({"ticks": stream(forwarded=ALONE["x-forwarded-for"])}, "scheme", SCHEME_LINE),
    (
        {"ticks": stream(forwarded=ALONE["x-forwarded-proto"])},
        "client address",
        CLIENT_LINE,
    ),
    ({"ticks": NO_NAME}, "headers", 'proxy_set_header Mcp-Name "";'),
    ({"refusal": whole("<html>", 401)}, "refusals", REFUSAL_LINE),
    ({"refusal": whole("<html>", 401, **CHALLENGE)}, "refusals", REFUSAL_LINE),
    ({"ticks": stream(0.01)}, "streams", "proxy_buffering off;"),
    ({"ticks": replace(stream(), parts=stream().parts[:3])}, "streams", TIMEOUT_LINE),
    ({"ticks": PACKED}, "streams", "gzip off;"),
    ({"silence": CUT}, "time-out", TIMEOUT_LINE),
    ({"body": whole("<html>", 413)}, "body", "client_max_body_size 1m;"),
    ({"body": Reply(failure=Failure.CUT)}, "body", "client_max_body_size 1m;"),
    ({BESIDE: replace(report(), seconds=2.5)}, "side by side", SERVER_LINE),
    ({"ticks": stream(database_ms=9_000)}, "clocks", CLOCK_LINE),
    ({"ticks": replace(stream(), clock_ms=9_000)}, "clocks", CLOCK_LINE),
    ({BESIDE: whole(MCP_ERROR, 401)}, "ours", ""),
]


@pytest.mark.parametrize("number", range(len(FAULTS)))
def test_one_fault_is_one_problem_for_command_and_page(number: int) -> None:
    replies, rule, line = FAULTS[number]
    found = judged(replies)
    assert bad(found) == [(rule, line)]
    seen = {**HEALTHY, **replies}
    if any(reply.clock_ms for reply in seen.values()):
        # The clock of a browser counts for nothing.
        return
    given = json.loads(json.dumps(as_script_sends_it(seen)))
    page = observations_of_page(given, URL, 4_000)
    assert judge_observations(page, SITE) == found


def moved(location: str, status: int = 301) -> Reply:
    return whole("", status, location=location)


AT_PORT: Final = URL.replace(".com", ".com:8443")
ELSEWHERE: Final[list[tuple[Reply, str, str]]] = [
    (whole("<html>", 200, **{"content-type": "text/html"}), "ours", ""),
    (whole("", 404), "ours", ""),
    (whole(MCP_ERROR, 401, **CHALLENGE), "ours", ""),
    (whole("<h1>Bad Request (400)</h1>", 400), "host", HOST_LINE),
    (whole("<h1>400 Bad Request</h1> to an HTTPS port", 400), "ours", ""),
    (whole(MCP_ERROR, 421), "host", HOST_LINE),
    (moved(URL), "redirect", SCHEME_LINE),
    (moved("/mcp"), "redirect", SCHEME_LINE),
    (moved("//["), "redirect", ""),
    (moved(AT_PORT), "redirect", f'MCP["PUBLIC_URL"] = "{AT_PORT}"'),
    (moved(URL.replace(".com", ".com:443")), "redirect", SCHEME_LINE),
    # The site would write it without the slash.
    (moved(f"{URL}/", 308), "redirect", ""),
    (moved("/mcp/", 308), "redirect", ""),
    (moved("/login/", 302), "redirect", ""),
    (moved("https://sso.example.com/login", 302), "redirect", ""),
    (moved(f"{URL}?next=/mcp", 302), "redirect", ""),
    (moved(URL.replace("https", "http"), 302), "redirect", ""),
    (moved(URL.replace("mcp.", "me:word@"), 302), "redirect", ""),
    (Reply(failure=Failure.REDIRECT), "redirect", ""),
]


@pytest.mark.parametrize("number", range(len(ELSEWHERE)))
def test_where_it_leads_elsewhere_nothing_else_is_said(number: int) -> None:
    reply, rule, line = ELSEWHERE[number]
    found = judged({"ticks": reply})
    assert bad(found) == [(rule, line)]
    assert {each.rule for each in found} <= {"address", "redirect", rule}
    assert has_answer(Observations(URL, {"ticks": reply}))


@pytest.mark.parametrize("failure", [Failure.UNREACHABLE, Failure.TLS, Failure.LATE])
def test_no_answer(failure: Failure) -> None:
    reply = Reply(failure=failure, detail="why")
    found = judged({"ticks": reply})
    assert bad(found) == [("address", "")]
    assert [each.why for each in found] == ["why"]
    assert not has_answer(Observations(URL, {"ticks": reply}))


def test_what_is_no_http_does_not_paint_the_terminal() -> None:
    reply = Reply(failure=Failure.UNREACHABLE, detail="\x1b[31mSSH\r\n")
    assert [each.why for each in judged({"ticks": reply})] == ["⟦U+001B⟧[31mSSH"]


def test_the_address_with_a_slash() -> None:
    assert bad(judged({SLASH: moved(URL)})) == [("redirect", "")]


def test_settings_that_do_not_fit() -> None:
    other = replace(SITE, hosts_line="hosts", allowed_hosts_line="allowed hosts")
    assert bad(judged(site=other)) == [("host", "hosts")]
    lost = whole(MCP_ERROR, 421)
    assert bad(judged({"ticks": lost}, other)) == [("host", "hosts")]
    lost = whole("<h1>Bad Request (400)</h1>", 400)
    assert bad(judged({"ticks": lost}, other)) == [("host", "allowed hosts")]
    alone = replace(SITE, trusts_proxies=False)
    expected = ("client address", 'MCP["TRUSTED_PROXIES"] = 1')
    assert bad(judged(site=alone)) == [expected]


def test_http_is_for_this_machine_alone() -> None:
    def rules(host: str) -> list[str]:
        ticks = {"ticks": stream(host=host)}
        return [rule for rule, _ in bad(judged(ticks, url=f"http://{host}/mcp"))]

    assert rules("mcp.example.com") == ["address"]
    for host in ("localhost:8000", "127.0.0.1", "[::1]:9"):
        assert rules(host) == []


def test_an_address_in_upper_case() -> None:
    assert not bad(judged(url="HTTPS://MCP.example.com/mcp"))


def test_a_scheme_that_several_proxies_pass_on() -> None:
    told = {**ARRIVED["forwarded"], "x-forwarded-proto": "https, http"}
    assert not bad(judged({"ticks": stream(forwarded=told)}))
    told["x-forwarded-proto"] = "http,https"
    assert [rule for rule, _ in bad(judged({"ticks": stream(forwarded=told)}))] == [
        "scheme"
    ]


@pytest.mark.parametrize("reply", [Reply(failure=Failure.LATE), whole("", 408)])
def test_a_slow_line_is_no_fault_of_a_proxy(reply: Reply) -> None:
    found = judged({"body": reply})
    assert not bad(found)
    assert [e.grade for e in found if e.rule == "body"] == [Grade.UNKNOWN]


def test_without_streams_it_cannot_tell() -> None:
    found = judged({"ticks": stream(0.0, interface="WSGI")})
    assert not bad(found)
    assert [e.grade for e in found if e.rule == "streams"] == [Grade.UNKNOWN]


def test_an_unknown_proxy_gets_the_lines_of_all() -> None:
    reply = replace(stream(host="up"), headers={**STREAM, "server": "uvicorn"})
    ((_, line),) = bad(judged({"ticks": reply}))
    assert line.splitlines() == [
        "nginx: proxy_set_header Host $http_host;",
        "Apache: ProxyPreserveHost On",
        "HAProxy: http-request set-header Host mcp.example.com",
    ]


def test_an_answer_that_took_long_tells_no_clock() -> None:
    """The report was written before it arrived."""
    late = replace(stream(), clock_ms=1_000 + 1_900, seconds=10.0)
    assert not bad(judged({Probe.TICKS: late}))


METADATA_URL: Final = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (whole(json.dumps({"resource": f"{URL}/"})), []),
        (whole("<html>Log in"), [("well-known", "")]),
        (whole("", 302, location="/login/"), [("well-known", "")]),
        (whole(json.dumps({"resource": URL}), 404), [("well-known", "")]),
        (whole(json.dumps({"resource": 7})), [("well-known", "")]),
        (whole("", 401, **CHALLENGE), [("well-known", "")]),
        (
            whole(json.dumps({"resource": "http://mcp.example.com/mcp"})),
            [("well-known", f'MCP["PUBLIC_URL"] = "{URL}"')],
        ),
        (
            whole(json.dumps({"resource": "x" * 9_000})),
            [("well-known", f'MCP["PUBLIC_URL"] = "{URL}"')],
        ),
    ],
)
def test_metadata(reply: Reply, expected: list[tuple[str, str]]) -> None:
    site = replace(SITE, signs_in=True)
    found = judged({METADATA: reply}, site)
    assert bad(found) == expected
    said = [each.what for each in found if each.rule == "well-known"]
    assert not expected or METADATA_URL in said[0]
    # Where nobody signs in, nobody looks.
    assert not bad(judged({METADATA: reply}))


def test_metadata_that_nobody_asked_for() -> None:
    found = judged(site=replace(SITE, signs_in=True))
    assert not bad(found)
    grades = {each.rule: each.grade for each in found}
    assert grades["well-known"] is Grade.UNKNOWN


def test_a_page_has_a_box_for_silent_streams() -> None:
    replies = {name: HEALTHY[name] for name in HEALTHY if name != "silence"}
    found = judge_observations(Observations(URL, replies, 4_000, by_browser=True), SITE)
    (said,) = [each for each in found if each.rule == "time-out"]
    assert (said.grade, said.line) == (Grade.UNKNOWN, "")
    assert "box" in said.why
