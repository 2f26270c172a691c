"""Whether programs can sign in safely: what each unsafe setting is told."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings
from django.urls import path
from django.views.generic import TemplateView

from mcp_app.checks.settings import check_sign_in
from tests.oauth.program import ORIGIN, WAYS

urlpatterns = [path("<path:any>", TemplateView.as_view(template_name="home.html"))]


def numbers(**options: Any) -> list[str]:
    found = {"PUBLIC_URL": ORIGIN, "AUTHENTICATION": WAYS, **options}
    named = {name: value for name, value in found.items() if value is not None}
    with override_settings(MCP=named):
        return [str(each.id) for each in check_sign_in(None)]


def test_two_lines_are_enough() -> None:
    assert numbers() == []


def test_who_lets_nobody_sign_in_reads_nothing() -> None:
    token = {"token": WAYS["token"]}
    assert numbers(AUTHENTICATION=token, PUBLIC_URL=None) == []


@pytest.mark.parametrize(
    ("options", "number"),
    [
        ({"PUBLIC_URL": None}, "mcp_app.E016"),
        ({"PUBLIC_URL": "http://shop.example.com"}, "mcp_app.E017"),
        ({"OAUTH": {"client": []}}, "mcp_app.E015"),
        ({"OAUTH": {"clients": "claude.ai"}}, "mcp_app.E015"),
        ({"OAUTH": {"clients": ["https://claude.ai/"]}}, "mcp_app.E015"),
        ({"OAUTH": {"schemes": ["javascript"]}}, "mcp_app.E015"),
        ({"OAUTH": {"networks": ["10.0.0.1/8"]}}, "mcp_app.E015"),
        ({"OAUTH": {"ca": "/nowhere.pem"}}, "mcp_app.E015"),
        ({"OAUTH": {"registration": "yes"}}, "mcp_app.E015"),
        ({"OAUTH": {"documents": "no"}}, "mcp_app.E015"),
        ({"OAUTH": {"registration": False, "documents": False}}, "mcp_app.E015"),
    ],
)
def test_what_is_unsafe(options: dict[str, Any], number: str) -> None:
    assert numbers(**options) == [number]


def test_http_is_enough_on_loopback() -> None:
    assert numbers(PUBLIC_URL="http://127.0.0.1:8000") == []


@override_settings(ROOT_URLCONF=__name__, LOGIN_URL="https://login.example.com/")
def test_addresses_that_another_app_answers() -> None:
    assert numbers() == ["mcp_app.E018", "mcp_app.E018"]


@override_settings(LOGIN_URL="/nowhere/")
def test_a_login_page_that_is_not_there() -> None:
    assert numbers() == ["mcp_app.E019"]


@override_settings(SECURE_PROXY_SSL_HEADER=("HTTP_X_FORWARDED_PROTO", "https"))
def test_a_proxy_that_is_not_trusted() -> None:
    assert numbers() == ["mcp_app.W024"]
    assert numbers(TRUSTED_PROXIES=1) == []
