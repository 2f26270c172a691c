"""Whom claims mean: exactly one user, or nobody."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from mcp_app.auth.issuer_options import IssuerOptions
from mcp_app.auth.issuer_tokens import NO_USER_MESSAGE, find_user
from mcp_app.egress.documents import Bounds
from mcp_app.interface.principal import AuthenticationFailed
from tests.auth.issuers.users import by_employee

pytestmark = [pytest.mark.django_db, pytest.mark.databases]


def options(claim: str = "sub", field: str = "username", **more: Any) -> IssuerOptions:
    return IssuerOptions(
        name="keycloak",
        issuer="https://id.example.com",
        claim=claim,
        field=field,
        bounds=Bounds(),
        **more,
    )


def outcome(given: IssuerOptions, **claims: object) -> str:
    try:
        found: User = find_user(given, claims)
    except AuthenticationFailed as error:
        return str(error)
    return found.username


def test_a_column_must_equal_the_claim_character_by_character() -> None:
    """MariaDB's collations find Ána for ana, and some columns ignore spaces."""
    User.objects.create(username="ana")
    assert outcome(options(), sub="ana") == "ana"
    for other in ("Ana", "ána", "ana ", " ana", "ana\0", "an", "ana\ud800", "\uff41na"):
        assert outcome(options(), sub=other) == NO_USER_MESSAGE, other
    assert not User.objects.exclude(username="ana").exists()


def test_a_claim_must_be_a_text() -> None:
    User.objects.create(username="7")
    for claims in ({}, {"sub": ""}, {"sub": None}, {"sub": 7}, {"sub": ["7"]}):
        assert outcome(options(), **claims) == "The token has no sub."
    assert outcome(options(), sub="7") == "7"


def test_numbers_are_compared_as_text() -> None:
    user = User.objects.create(username="ana")
    given = options("employee", "pk")
    assert outcome(given, employee=f"{user.pk}") == "ana"
    for other in (f"0{user.pk}", f"+{user.pk}", f"{user.pk}.0", "ana", f"{10**30}"):
        assert outcome(given, employee=other) == NO_USER_MESSAGE


def test_an_e_mail_address_must_be_verified_and_has_no_case() -> None:
    User.objects.create(username="ana", email="Ana@Example.com")
    given = options("email", "email")
    verified = {"email_verified": True}
    for address in ("ana@example.com", "ANA@example.COM", "Ana@Example.com"):
        assert outcome(given, email=address, **verified) == "ana"
    for address in ("aná@example.com", "ana@example.com ", "ana@example_com", "%"):
        assert outcome(given, email=address, **verified) == NO_USER_MESSAGE
    for doubt in (False, None, "true", 1):
        said = outcome(given, email="ana@example.com", email_verified=doubt)
        assert said == "The e-mail address of the token is not verified."
    assert "not verified" in outcome(given, email="ana@example.com")


def test_letters_beyond_ascii_are_not_lowered() -> None:
    """U+212A is the sign of Kelvin, whose lower case is a plain k."""
    User.objects.create(username="kate", email="kate@example.com")
    given = options("email", "email")
    for address in ("\u212aate@example.com", "kate@exampl\u0435.com"):
        assert outcome(given, email=address, email_verified=True) == NO_USER_MESSAGE


def test_addresses_beyond_ascii_are_compared_as_they_are() -> None:
    User.objects.create(username="ana", email="\u00c1na@b.c")
    User.objects.create(username="bert", email="\u00c1NA@b.c")
    given = options("email", "email")
    for address, name in (("\u00c1na@b.c", "ana"), ("\u00c1NA@b.c", "bert")):
        assert outcome(given, email=address, email_verified=True) == name
    assert outcome(given, email="\u00c1nA@b.c", email_verified=True) == NO_USER_MESSAGE


def test_claims_that_fit_two_users_find_nobody() -> None:
    for name in ("ana", "bert"):
        User.objects.create(username=name, email=f"{'A' if name == 'ana' else 'a'}@b.c")
    given = options("email", "email")
    assert outcome(given, email="a@b.c", email_verified=True) == NO_USER_MESSAGE


def test_a_function_of_the_site_finds_them() -> None:
    User.objects.create(username="ana")
    given = options("employee", "", user=by_employee)
    claims = {"employee": "e-ana"}
    assert find_user(given, claims).username == "ana"
    assert claims == {"employee": "e-ana"}
    assert outcome(given, sub="ana") == "The token has no employee."
