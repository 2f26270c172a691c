"""Findings as JSON, and whether one is a problem."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.workbench.checking.findings import (
    Fault,
    Proxy,
    lines_for,
    proxy_from_header,
)

# -- remedies --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "proxy"),
    [
        ("nginx/1.22.1", Proxy.NGINX),
        ("Apache/2.4.62 (Debian)", Proxy.APACHE),
        ("uvicorn", None),
        ("", None),
    ],
)
def test_it_names_itself(server: str, proxy: Proxy | None) -> None:
    assert proxy_from_header(server) is proxy


def test_of_an_unknown_one_there_are_all() -> None:
    lines = lines_for(Fault.TIMEOUT, None)
    assert lines.splitlines() == [
        "nginx: proxy_read_timeout 120s;",
        "Apache: ProxyTimeout 120",
        "HAProxy: timeout server 120s",
    ]


def test_a_proxy_waits_for_longer_than_a_stream_is_silent() -> None:
    line = lines_for(Fault.TIMEOUT, Proxy.NGINX, heartbeat=90.5)
    assert line == "proxy_read_timeout 181s;"


def test_what_lines_depend_on() -> None:
    place: dict[str, Any] = {"header": "Mcp-Name", "body": 5 * 1024 * 1024 + 1}
    assert lines_for(Fault.BODY, Proxy.NGINX, **place) == "client_max_body_size 6m;"
    assert lines_for(Fault.BODY, Proxy.APACHE, **place) == ""
    assert 'proxy_set_header Mcp-Name "";' in lines_for(Fault.HEADER, None, **place)
    for fault in Fault:
        for proxy in Proxy:
            assert "{{" not in lines_for(fault, proxy, **place)
