"""A request of Django's for what verifies, and the users that may come in."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User

from mcp_app.auth.site_requests import let_in, site_request
from mcp_app.interface.principal import AuthenticationFailed, AuthenticationRequest
from mcp_app.protocol.headers import Headers

GIVEN = [
    (b"authorization", b"Bearer x"),
    (b"cookie", b"sessionid=7"),
    (b"content-type", b"multipart/form-data; boundary=b"),
    (b"content-length", b"99"),
    (b"content-encoding", b"gzip"),
    (b"transfer-encoding", b"chunked"),
]


def asked(**more: Any) -> AuthenticationRequest:
    given = {"host": "shop.example", "path": "/mcp", "server": "default", **more}
    return AuthenticationRequest(headers=Headers(GIVEN), **given)


def test_it_has_the_credentials_and_nothing_of_the_body() -> None:
    request = site_request(asked(scheme="https", peer="192.0.2.7"))
    assert request.headers["Authorization"] == "Bearer x"
    assert request.COOKIES == {"sessionid": "7"}
    assert (request.method, request.path, request.scheme) == ("POST", "/mcp", "https")
    assert request.META["REMOTE_ADDR"] == "192.0.2.7"
    assert (request.content_type, request.body) == ("", b"")
    assert "CONTENT_LENGTH" not in request.META
    assert not request.POST
    assert not request.GET


def test_another_method_and_no_peer() -> None:
    request = site_request(asked(method="DELETE"), "GET")
    assert request.method == "GET"
    assert site_request(asked(method="DELETE")).method == "DELETE"
    assert "REMOTE_ADDR" not in request.META


def test_an_active_user_comes_in() -> None:
    principal = let_in(User(pk=7, username="ana"), kind="drf", client="shop.Basic")
    assert (principal.kind, principal.client) == ("drf", "shop.Basic")
    assert (principal.user_id, principal.user_name) == ("7", "ana")
    # What the user may is asked of Django, each time.
    assert principal.permissions is None


def test_a_user_who_may_not_log_in() -> None:
    with pytest.raises(AuthenticationFailed):
        let_in(User(pk=7, is_active=False), kind="drf", client="")


@pytest.mark.parametrize(
    "user", [None, AnonymousUser(), Group(pk=7), User(username="unsaved"), "ana"]
)
def test_who_is_no_user_stands_for_nobody(user: Any) -> None:
    with pytest.raises(TypeError, match=r"^shop\.Basic authenticated a \w+, which is"):
        let_in(user, kind="drf", client="shop.Basic")
