"""The findings of a check, each with the line to change."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Grade(StrEnum):
    """How serious a finding is."""

    GOOD = "good"
    ADVICE = "advice"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is the case, why it matters, and the line to change; `rule` names what was
    looked at."""

    rule: str
    grade: Grade
    what: str
    why: str = ""
    line: str = ""


def has_problem(findings: Iterable[Finding]) -> bool:
    """Whether one of them is a problem."""
    return any(finding.grade is Grade.PROBLEM for finding in findings)


# -- remedies --------------------------------------------------------------------------
# The lines of a proxy's configuration that mend a fault, by the proxy.
#
# Lines stand in the part of the configuration that is about the endpoint: nginx's
# `location /mcp`, before Apache's `ProxyPass`, HAProxy's `backend` or `frontend`.

MIB: Final = 1024 * 1024
PATIENT_S: Final = 120
"""Seconds that a proxy is to wait, unless a stream may be silent for longer."""


class Proxy(StrEnum):
    """A proxy that these lines are for; the value is its name."""

    NGINX = "nginx"
    APACHE = "Apache"
    HAPROXY = "HAProxy"


class Fault(StrEnum):
    """What a proxy does to requests or answers."""

    HOST = "host"
    SCHEME = "scheme"
    ADDRESS = "address"
    HEADER = "header"
    """It removes a header; this line must be deleted."""
    REFUSALS = "refusals"
    BUFFERING = "buffering"
    COMPRESSION = "compression"
    TIMEOUT = "timeout"
    BODY = "body"


_LINES: Final[Mapping[Fault, Mapping[Proxy, str]]] = {
    Fault.HOST: {
        Proxy.NGINX: "proxy_set_header Host $http_host;",
        Proxy.APACHE: "ProxyPreserveHost On",
        Proxy.HAPROXY: "http-request set-header Host {host}",
    },
    Fault.SCHEME: {
        Proxy.NGINX: "proxy_set_header X-Forwarded-Proto $scheme;",
        Proxy.APACHE: "RequestHeader set X-Forwarded-Proto expr=%{{REQUEST_SCHEME}}",
        Proxy.HAPROXY: (
            "http-request set-header X-Forwarded-Proto https if {{ ssl_fc }}"
        ),
    },
    Fault.ADDRESS: {
        Proxy.NGINX: "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
        Proxy.APACHE: "ProxyAddHeaders On",
        Proxy.HAPROXY: "option forwardfor",
    },
    Fault.HEADER: {
        Proxy.NGINX: 'proxy_set_header {header} "";',
        Proxy.APACHE: "RequestHeader unset {header}",
        Proxy.HAPROXY: "http-request del-header {header}",
    },
    Fault.REFUSALS: {
        Proxy.NGINX: "proxy_intercept_errors off;",
        Proxy.APACHE: "ProxyErrorOverride Off",
    },
    Fault.BUFFERING: {Proxy.NGINX: "proxy_buffering off;"},
    Fault.COMPRESSION: {
        Proxy.NGINX: "gzip off;",
        Proxy.APACHE: "SetEnv no-gzip 1",
    },
    Fault.TIMEOUT: {
        Proxy.NGINX: "proxy_read_timeout {seconds}s;",
        Proxy.APACHE: "ProxyTimeout {seconds}",
        Proxy.HAPROXY: "timeout server {seconds}s",
    },
    # Apache does not apply its limit to requests that it passes on.
    Fault.BODY: {Proxy.NGINX: "client_max_body_size {mebibytes}m;"},
}


def proxy_from_header(server: str) -> Proxy | None:
    """Return the proxy that names itself in the header `Server`, None if none does.

    HAProxy passes on the header of the server behind it.
    """
    product = server.lower()
    matches = (each for each in Proxy if product.startswith(each.value.lower()))
    return next(matches, None)


def lines_for(
    fault: Fault,
    proxy: Proxy | None,
    *,
    host: str = "",
    header: str = "",
    body: int = 0,
    heartbeat: float = 0.0,
) -> str:
    """Return the line that mends a fault; for an unknown proxy, a line for each proxy.

    `body` is the size in bytes that must be let through, `heartbeat` the seconds for
    which a stream is silent.
    """
    values = {
        "host": host,
        "header": header,
        # Rounded up.
        "mebibytes": -(-body // MIB),
        "seconds": max(PATIENT_S, math.ceil(2 * heartbeat)),
    }
    lines = {key: text.format(**values) for key, text in _LINES[fault].items()}
    if proxy is not None:
        return lines.get(proxy, "")
    return "\n".join(f"{key.value}: {text}" for key, text in lines.items())
