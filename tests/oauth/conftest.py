"""A site that programs can sign in to, a person, and a program."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from mcp_app.models import Server
from mcp_app.oauth import consent_views
from tests.oauth.program import ORIGIN, WAYS, Program
from tests.published import published


@pytest.fixture(autouse=True)
def site(settings: Any) -> None:
    """The two lines, and a public address."""
    settings.MCP = {**settings.MCP, "PUBLIC_URL": ORIGIN, "AUTHENTICATION": WAYS}
    settings.ALLOWED_HOSTS = ["*"]
    consent_views.page_limit.forget()


@pytest.fixture
def support() -> Server:
    """A server that programs sign in to, or come to with a token."""
    return published(Server(slug="support", title="Support desk", access="oauth token"))


@pytest.fixture
def ana() -> User:
    return User.objects.create_user("ana")


@pytest.fixture
def hers(client: Client, ana: User) -> Client:
    """Her browser, in which she is signed in."""
    client.force_login(ana)
    return client


@pytest.fixture
def program(client: Client) -> Program:
    """A program that has registered, as Claude does."""
    return Program(Client())
