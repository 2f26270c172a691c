"""The project's settings under environments of their own, each in a new process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

PROBE = """
import json, sys
from mcp_project import settings
print(json.dumps({name: getattr(settings, name) for name in sys.argv[1:]}))
"""
OURS = ("SECRET_KEY", "DEBUG", "ALLOWED_HOSTS", "DATABASE_URL", "REDIS_URL")
DEPLOYED = {"SECRET_KEY": "a" * 50, "ALLOWED_HOSTS": "mcp.example.com"}


def run_settings(
    environ: dict[str, str], *names: str
) -> subprocess.CompletedProcess[str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in OURS and not name.startswith("MCP_")
    }
    return subprocess.run(
        [sys.executable, "-c", PROBE, *names],
        env=inherited | environ,
        capture_output=True,
        text=True,
        check=False,
    )


def settings_under(environ: dict[str, str], *names: str) -> dict[str, Any]:
    run = run_settings(environ, *names)
    assert run.returncode == 0, run.stderr
    values: dict[str, Any] = json.loads(run.stdout)
    return values


def test_nothing_set_is_development_on_sqlite_and_one_process() -> None:
    values = settings_under({}, "DEBUG", "ALLOWED_HOSTS", "DATABASES", "CHANNEL_LAYERS")
    database = values["DATABASES"]["default"]
    assert values["DEBUG"] is True
    assert values["ALLOWED_HOSTS"] == []
    assert database["NAME"].endswith("/db.sqlite3")
    assert database["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "InMemory" in values["CHANNEL_LAYERS"]["default"]["BACKEND"]


def test_a_named_key_ends_debug() -> None:
    key = {"SECRET_KEY": DEPLOYED["SECRET_KEY"]}
    assert settings_under(key, "DEBUG") == {"DEBUG": False}
    assert settings_under(key | {"DEBUG": "on"}, "DEBUG") == {"DEBUG": True}


@pytest.mark.parametrize("environ", [{"DEBUG": "off"}, {"ALLOWED_HOSTS": "a.example"}])
def test_without_debug_a_missing_secret_key_is_refused(environ: dict[str, str]) -> None:
    run = run_settings(environ)
    assert run.returncode == 1
    assert "The environment variable SECRET_KEY is not set." in run.stderr


def test_a_deployment_is_secure_unless_told_otherwise() -> None:
    names = ("SECURE_SSL_REDIRECT", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE")
    assert all(settings_under(DEPLOYED, *names).values())
    behind_proxy = DEPLOYED | {
        "SECURE_SSL_REDIRECT": "off",
        "SECURE_PROXY_SSL_HEADER": "HTTP_X_FORWARDED_PROTO,https",
    }
    assert settings_under(
        behind_proxy, "SECURE_SSL_REDIRECT", "SECURE_PROXY_SSL_HEADER"
    ) == {
        "SECURE_SSL_REDIRECT": False,
        "SECURE_PROXY_SSL_HEADER": ["HTTP_X_FORWARDED_PROTO", "https"],
    }


def test_urls_choose_the_database_and_the_channel_layer() -> None:
    environ = {
        "DATABASE_URL": "postgres://shop:secret@127.0.0.1:5432/shop",
        "REDIS_URL": "redis://127.0.0.1:6379/1",
        "MCP_THREADS": "3",
    }
    values = settings_under(environ, "DATABASES", "CHANNEL_LAYERS", "MCP")
    database, layer = values["DATABASES"]["default"], values["CHANNEL_LAYERS"]
    assert database["ENGINE"] == "django.db.backends.postgresql"
    assert database["HOST"] == "127.0.0.1"
    assert layer["default"]["CONFIG"] == {"hosts": ["redis://127.0.0.1:6379/1"]}
    assert values["MCP"]["THREADS"] == 3


def test_programs_sign_in_where_there_is_an_address_for_them() -> None:
    production = {"SECRET_KEY": "x" * 50, "ALLOWED_HOSTS": "shop.example.com"}
    public = {**production, "MCP_PUBLIC_URL": "https://shop.example.com"}
    chosen = {**public, "MCP_AUTHENTICATION": '{"token": "a.b"}'}
    for environ, ways in (
        ({}, ["oauth", "token"]),
        (production, []),
        (public, ["oauth", "token"]),
        (chosen, ["token"]),
    ):
        values = settings_under(environ, "MCP")
        assert sorted(values["MCP"].get("AUTHENTICATION", {})) == ways
