"""The options of an issuer: each that is wrong is named, with its way out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.db import models
from pytest_django import Settings

from mcp_app.auth.issuer_options import UnusableIssuer, read_options
from tests.auth.issuers.users import by_employee

GOOD: Final = {
    "issuer": "https://id.example.com/realms/staff",
    "claim": "sub",
    "field": "username",
}
USERS: Final = "tests.auth.issuers.users"


@pytest.fixture(autouse=True)
def _public(settings: Settings) -> None:
    settings.MCP = {"PUBLIC_URL": "https://shop.example.com"}


def problem(given: dict[str, Any]) -> str:
    try:
        read_options("keycloak", given)
    except UnusableIssuer as error:
        return str(error)
    return ""


def test_what_is_left_out() -> None:
    found = read_options("keycloak", GOOD)
    assert (found.name, found.issuer, found.claim, found.field, found.user) == (
        "keycloak",
        "https://id.example.com/realms/staff",
        "sub",
        "username",
        None,
    )
    assert (found.audience, found.jwks, found.scopes) == ("", "", True)
    bounds = found.bounds
    assert (bounds.networks, bounds.ca, bounds.timeout) == ([], "", 5.0)
    assert bounds.answer == 16 * 1024


def test_what_is_named(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.touch()
    found = read_options(
        "keycloak",
        {
            "issuer": "http://[::1]:8080/realms/staff",
            "claim": "employee",
            "user": f"{USERS}.by_employee",
            "audience": "api://mcp",
            "jwks": "https://id/keys?policy=a",
            "scopes": False,
            "networks": ["::1/128"],
            "ca": str(ca),
            "timeout": 2,
        },
    )
    assert (found.field, found.user, found.scopes) == ("", by_employee, False)
    assert (found.audience, found.jwks) == ("api://mcp", "https://id/keys?policy=a")
    assert (str(found.bounds.networks[0]), found.bounds.timeout) == ("::1/128", 2.0)
    assert found.bounds.ca == str(ca)


def test_what_cannot_be_used() -> None:
    table: list[tuple[dict[str, Any], str]] = [
        ({"issuer": None}, 'needs "issuer", an address such as'),
        ({"issuer": 7}, 'has the "issuer" 7: Input should be a valid string'),
        ({"issuer": "id.example.com"}, 'needs "issuer", an address such as'),
        ({"issuer": "http://id.example.com"}, "with http://, which is for private"),
        (
            {"issuer": "http://id.example.com", "networks": ["10.0.0.0/8"]},
            'has as "issuer" an address with http://, which is for loopback alone.'
        ),
        (
            {"issuer": "http://10.0.0.7", "networks": ["10.0.0.0/8"]},
            "which is for loopback alone"
        ),
        ({"issuer": "https://localhost"}, "which is for private networks alone"),
        ({"issuer": "https://id.example.com?a=b"}, "no issuer has a query"),
        ({"issuer": "https://id.example.com/a/../b"}, "with a segment that is"),
        ({"jwks": "http://id.example.com/keys"}, 'has as "jwks" an address with http://'),
        ({"claim": None}, 'needs a "claim"'),
        ({"claim": ["sub"]}, "['sub']: Input should be a valid string"),
        ({"claim": "preferred_username"}, 'which people can change'),
        ({"field": None}, 'needs either "field", a unique column'),
        ({"user": f"{USERS}.by_employee"}, 'has both "field" and "user": use either'),
        ({"field": "nick"}, "has the \"field\" 'nick', which auth.User does not have"),
        ({"field": "email"}, "'email', which several rows of auth.User may share"),
        ({"field": "groups"}, "'groups', which several rows of auth.User may share"),
        (
            {"field": None, "user": f"{USERS}.unheard_of"},
            "which cannot be imported"
        ),
        ({"field": None, "user": "by_employee"}, "which cannot be imported"),
        ({"field": None, "user": f"{USERS}.NO_FUNCTION"}, "which is not a function"),
        ({"field": None, "user": "datetime.date"}, "which is not a function"),
        ({"field": None, "user": f"{USERS}.in_async"}, "which is async. Write it with"),
        ({"audience": 7}, 'has the "audience" 7: Input should be a valid string'),
        ({"scopes": "no"}, "has the \"scopes\" 'no': Input should be a valid boolean"),
        ({"networks": "10.0.0.0/8"}, "'10.0.0.0/8': Input should be a valid list"),
        ({"ca": "no/such/file"}, "it is not a file"),
        ({"timeout": 0}, 'has the "timeout" 0: Input should be greater than 0')
    ]  # fmt: skip
    for changes, said in table:
        given = {key: value for key, value in {**GOOD, **changes}.items() if value}
        if 0 in changes.values():
            given |= changes
        assert said in problem(given), changes


def test_without_an_address_there_is_no_audience(settings: Settings) -> None:
    for given in ({}, {"PUBLIC_URL": "shop.example.com"}):
        settings.MCP = given
        assert 'needs an "audience", because without MCP["PUBLIC_URL"]' in problem(GOOD)
        assert problem({**GOOD, "audience": "api://mcp"}) == ""


def test_a_column_is_unique_by_a_constraint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    constraints = [
        models.UniqueConstraint(fields=["email"], name="one_email"),
        models.UniqueConstraint(fields=["last_name", "first_name"], name="one_name"),
    ]
    monkeypatch.setattr(User._meta, "total_unique_constraints", constraints)
    assert problem({**GOOD, "claim": "email", "field": "email"}) == ""
    assert "may share" in problem({**GOOD, "field": "last_name"})


@pytest.mark.parametrize(
    ("package", "extra"), [("jwt", "oauth"), ("httpcore2", "http")]
)
def test_a_package_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, package: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert problem(GOOD) == (
        "needs a package that is not installed. Install it:"
        f' pip install "django-mcp-app[{extra}]"'
    )
