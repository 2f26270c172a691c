"""A token in the address is forgotten, and warned of once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mcp_app.transports.http import host_and_origin
from mcp_app.transports.http.host_and_origin import forget_token


@pytest.fixture(autouse=True)
def _nobody_was_told() -> Iterator[None]:
    host_and_origin._tell.cache_clear()
    yield
    host_and_origin._tell.cache_clear()


@pytest.mark.parametrize(
    "query",
    [
        b"access_token=secret",
        b"a=1&access_token=secret&b=2",
        b"access_token=",
        b"access_token",
        b"access%5Ftoken=secret",
        b"access_token=secret&x=\xff",
    ],
)
def test_it_is_forgotten(query: bytes, caplog: pytest.LogCaptureFixture) -> None:
    scope: dict[str, Any] = {"query_string": query}
    forget_token(scope, "shop")
    assert scope["query_string"] == b""
    (record,) = caplog.records
    assert "the server 'shop'" in record.getMessage()
    assert "secret" not in record.getMessage()


@pytest.mark.parametrize(
    "query",
    [b"", b"token=a", b"x=access_token", b"my_access_token=a", b"ACCESS_TOKEN=a"],
)
def test_any_other_query_stays(query: bytes, caplog: pytest.LogCaptureFixture) -> None:
    scope: dict[str, Any] = {"query_string": query}
    forget_token(scope, "shop")
    assert scope == {"query_string": query}
    assert caplog.records == []


def test_a_scope_without_a_query(caplog: pytest.LogCaptureFixture) -> None:
    scope: dict[str, Any] = {}
    forget_token(scope, "shop")
    assert scope == {}
    assert caplog.records == []


def test_each_server_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    for server in ("shop", "shop", "office", "shop"):
        scope: dict[str, Any] = {"query_string": b"access_token=a"}
        forget_token(scope, server)
        assert scope["query_string"] == b""
    assert len(caplog.records) == 2
