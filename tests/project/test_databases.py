"""What connections of the project are opened with."""

from __future__ import annotations

from typing import Any

import environ
import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import load_backend

from mcp_project.databases import with_options
from tests.drill.databases import DATABASES


def options(url: str) -> dict[str, Any]:
    found: dict[str, Any] = with_options(environ.Env.db_url_config(url))["OPTIONS"]
    return found


def test_what_the_address_says_stands() -> None:
    found = options("postgres://user@host/name?connect_timeout=3&sslmode=require")
    assert (found["connect_timeout"], found["sslmode"]) == (3, "require")
    assert found["tcp_user_timeout"] == 30_000


def test_nothing_ends_a_slow_statement_of_mysql() -> None:
    assert "read_timeout" not in options("mysql://user@host/name")


def test_what_we_know_nothing_of_is_left_alone() -> None:
    found = with_options({"ENGINE": "another", "OPTIONS": {"a": 1}})
    assert found == {"ENGINE": "another", "OPTIONS": {"a": 1}}


@pytest.mark.parametrize("vendor", DATABASES)
def test_a_driver_takes_them(vendor: str, django_db_blocker: Any) -> None:
    with DATABASES[vendor]() as url, django_db_blocker.unblock():
        config = with_options(environ.Env.db_url_config(url))
        given = {"AUTOCOMMIT": True, "CONN_HEALTH_CHECKS": False, "TIME_ZONE": None}
        rest = {"CONN_MAX_AGE": 0, "TEST": {}}
        backend = load_backend(config["ENGINE"])
        wrapper: BaseDatabaseWrapper = backend.DatabaseWrapper(
            {**given, **rest, **config}
        )
        with wrapper.cursor() as cursor:
            cursor.execute("SELECT 1", [])
            assert cursor.fetchone() == (1,)
        wrapper.close()
