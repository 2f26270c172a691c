"""Whatever programs send, nothing breaks, and nobody is led where nobody registered."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_app.oauth import consent
from mcp_app.process.rates import MinuteLimit
from mcp_app.protocol.oauth.requests import MAX_FORM_BYTES
from tests.marks import long_cases
from tests.oauth.program import (
    AUTHORIZE,
    CONSENT,
    REDIRECT,
    RESOURCE,
    VERIFIER,
    Program,
    challenge_of,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("support")]

TARGETS: Final = re.compile(r'(?:href|src|action|formaction)="([^"]*)"|url=([^"]+)"')
HOST: Final = urlsplit(REDIRECT).netloc
FORM: Final = "application/x-www-form-urlencoded"

EVIL: Final = st.sampled_from(
    [
        "https://evil.example/",
        "//evil.example",
        "https://claude.ai@evil.example/api/mcp/auth_callback",
        "https://claude.ai.evil.example/api/mcp/auth_callback",
        "https://claude.ai\\@evil.example/",
        "https://claude.ai/api/mcp/auth_callback#x",
        "https://claude.ai/api/mcp/auth_callback/../x",
        "https://claude.ai:444/api/mcp/auth_callback",
        "javascript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        '"><meta http-equiv="refresh" content="0;url=https://evil.example">',
        "mcp_cl_" + "A" * 60,
        "https://evil.example/client.json",
        "\x00",
        "\ud800",
        "%",
        "%ff",
        "a" * 3_000,
    ]
)
GOOD: Final = st.sampled_from(
    [
        *("code", "S256", REDIRECT, RESOURCE, VERIFIER, challenge_of(VERIFIER)),
        *("authorization_code", "refresh_token", "client_credentials", "mcp:read"),
    ]
)
VALUES: Final = st.one_of(EVIL, GOOD, st.text(max_size=60))
NAMES: Final = st.one_of(
    st.sampled_from(
        [
            *("response_type", "client_id", "redirect_uri", "state", "scope"),
            *("resource", "code_challenge", "code_challenge_method", "prompt"),
            *("grant_type", "code", "code_verifier", "refresh_token", "client_secret"),
            *("token", "token_type_hint", "sealed", "may", "which", "ends", "request"),
        ]
    ),
    st.text(max_size=12),
)
CHANGES: Final = st.dictionaries(NAMES, st.one_of(st.none(), VALUES), max_size=4)
MORE: Final = st.lists(st.tuples(NAMES, VALUES), max_size=3)
JSON: Final = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), VALUES),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(VALUES, inner, max_size=3)
    ),
    max_leaves=6,
)
MEMBERS: Final = st.dictionaries(
    st.sampled_from(
        [
            *("client_name", "redirect_uris", "grant_types", "response_types"),
            *("token_endpoint_auth_method", "client_uri", "logo_uri", "scope"),
        ]
    ),
    JSON,
)

few: Final = [25, *long_cases(1_000)]


def examples(number: int, strategy: Any, check: Callable[[Any], None]) -> None:
    quiet = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    some = settings(max_examples=number, suppress_health_check=quiet, deadline=None)
    drawing: Any = given(strategy)
    drawing(some(check))()


def encoded(pairs: Any) -> str:
    """Return a form, also of what no text should have."""
    return urlencode(list(pairs), errors="surrogatepass")


def check_leads_nowhere(response: Any) -> None:
    """Nothing broke, and each address of the answer is ours or was registered."""
    assert response.status_code < 500
    assert re.fullmatch(r"|/(?!/).*", response.get("Location", ""))
    assert "Refresh" not in response
    for found in TARGETS.findall(response.content.decode()):
        target = unescape(found[0] or found[1])
        if target == "data:,":
            continue  # The icon that browsers would ask the site for.
        parts = urlsplit(target)
        assert parts.scheme in ("", "https"), target
        assert parts.netloc in ("", HOST), target


@pytest.mark.parametrize("number", few)
def test_t12_whatever_the_page_is_asked(
    hers: Client, program: Program, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consent, "page_limit", MinuteLimit(10**9))
    program.register()
    right = dict(x.split("=", 1) for x in urlsplit(program.request()).query.split("&"))

    def check(asked: tuple[dict[str, str | None], list[tuple[str, str]]]) -> None:
        changes, more = asked
        kept = [f"{name}={text}" for name, text in right.items() if name not in changes]
        other = [(name, text) for name, text in changes.items() if text is not None]
        query = "&".join([*kept, encoded([*other, *more])])
        check_leads_nowhere(hers.get(f"{AUTHORIZE}?{query}"))
        check_leads_nowhere(hers.post(CONSENT, query, content_type=FORM))

    examples(number, st.tuples(CHANGES, MORE), check)


@pytest.mark.parametrize("number", few)
def test_t12_whatever_a_program_sends(client: Client, number: int) -> None:
    def check(sent: tuple[str, str, str, list[tuple[str, str]]]) -> None:
        path, kind, bearer, pairs = sent
        response = client.generic(
            "POST",
            f"/mcp-oauth/{path}",
            encoded(pairs).encode(),
            kind,
            headers={"Authorization": bearer.encode("ascii", "replace").decode()},
        )
        check_leads_nowhere(response)

    kinds = st.sampled_from([FORM, f"{FORM}; charset=x", "application/json", "", "x"])
    paths = st.sampled_from(["token", "revoke", "register"])
    bearers = st.one_of(
        st.sampled_from(["Basic Og==", "Basic x", "Basic w4k6"]), VALUES
    )
    examples(number, st.tuples(paths, kinds, bearers, MORE), check)


@pytest.mark.parametrize("number", few)
def test_t12_whatever_a_program_says_of_itself(program: Program, number: int) -> None:
    def check(members: dict[str, Any]) -> None:
        response = program.register(**members)
        size = int(response.wsgi_request.META["CONTENT_LENGTH"])
        expected = (413,) if size > MAX_FORM_BYTES else (201, 400)
        assert response.status_code in expected
        assert set(response.json()) & {"client_id", "error"}

    examples(number, MEMBERS, check)
