"""A registration comes back out of the id that it was given, and out of no other."""

from __future__ import annotations

import json
import string
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_app.protocol.oauth.clients import (
    Registration,
    client_id_of,
    read_registration,
    registration_answer,
    registration_of,
)
from mcp_app.protocol.oauth.requests import OAuthError

REDIRECT = "https://a.example/b"
CLAUDE = Registration(
    name="Claude",
    redirects=("https://claude.ai/api/mcp/auth_callback",),
    grants=("authorization_code", "refresh_token"),
    issued=1_764_000_000,
)
BASE64URL = string.ascii_letters + string.digits + "-_"


def read(**metadata: object) -> Registration:
    body = json.dumps({"redirect_uris": [REDIRECT], **metadata}).encode()
    return read_registration(body, ["cursor"], issued=1_764_000_000)


def test_a_request_is_read() -> None:
    """What Claude sends; a client's wish for a secret is answered with none."""
    registration = read(
        client_name="Claude",
        redirect_uris=list(CLAUDE.redirects),
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="client_secret_post",
        scope="mcp:read",
        software_statement="x",
        logo_uri="https://claude.ai/logo.png",
    )
    assert registration == CLAUDE


def test_names() -> None:
    assert read(client_name="“A”\u202e B").name == "'A' B"
    assert read(client_name=None).name == "a.example"
    assert read(redirect_uris=["http://localhost:5/b"]).name == "localhost:5"
    assert read(redirect_uris=["cursor://a/b"], client_name=" ").name == "cursor"


def test_what_is_too_much_or_of_another_type() -> None:
    assert (
        len(read(redirect_uris=[f"{REDIRECT}{n}" for n in range(10)]).redirects) == 10
    )
    refused: list[dict[str, object]] = [
        {"redirect_uris": [f"{REDIRECT}{n}" for n in range(11)]},
        {"redirect_uris": [REDIRECT, *["javascript:a"] * 10]},
        {"client_name": 5},
        {"client_name": ["Claude"]},
        {"redirect_uris": REDIRECT},
    ]
    for metadata in refused:
        with pytest.raises(OAuthError) as caught:
            read(**metadata)
        assert caught.value.error == "invalid_client_metadata", metadata
    with pytest.raises(OAuthError) as caught:
        read(redirect_uris=["vscode://a/b"])
    assert caught.value.error == "invalid_redirect_uri"


def test_an_id_is_the_registration() -> None:
    client_id = client_id_of(CLAUDE, "new")
    assert client_id.startswith("mcp_cl_")
    assert len(client_id) < 320
    assert client_id == client_id_of(CLAUDE, "new") != client_id_of(CLAUDE, "old")
    assert registration_of(client_id, ["new"]) == CLAUDE
    assert registration_of(client_id_of(CLAUDE, "old"), ["new", "old"]) == CLAUDE
    assert registration_of(client_id, ["old", ""]) is None
    assert registration_of(client_id, []) is None


@settings(max_examples=30)
@given(
    st.text(max_size=60),
    st.lists(st.text(max_size=60), max_size=3).map(tuple),
    st.integers(0, 2**40),
)
def test_any_registration_comes_back(
    name: str, redirects: tuple[str, ...], issued: int
) -> None:
    registration = Registration(
        name=name, redirects=redirects, grants=CLAUDE.grants, issued=issued
    )
    assert registration_of(client_id_of(registration, "a"), ["a"]) == registration


def test_one_letter_makes_another_id() -> None:
    """Each place of an id, with each other letter at the last one of it."""
    client_id = client_id_of(CLAUDE, "a")
    for place in range(len(client_id)):
        letter = "B" if client_id[place] == "A" else "A"
        changed = client_id[:place] + letter + client_id[place + 1 :]
        assert registration_of(changed, ["a"]) is None, place
    for name in ("Claude", "Claude2", "Claude33"):  # Each length of a last group.
        client_id = client_id_of(replace(CLAUDE, name=name), "a")
        for letter in BASE64URL.replace(client_id[-1], ""):
            assert registration_of(client_id[:-1] + letter, ["a"]) is None, letter


def test_what_was_never_an_id() -> None:
    good = client_id_of(CLAUDE, "a")
    for text in [
        *("", "mcp_cl_", "mcp_cl_A", "mcp_cl_" + "A" * 44, "mcp_cl_é", "A" * 300),
        *(good[:-1], good + "A", good + "=", good + "\n", " " + good, good.upper()),
        *(good.replace("mcp_cl_", "mcp_at_"), good.removeprefix("mcp_cl_")),
        *("mcp_cl_" + good, "mcp_cl_" + "A" * 3_000, good[:40] + "\n" + good[40:]),
        *(good[:40] + "+/" + good[42:], good[:40] + "%" + good[40:]),
    ]:
        assert registration_of(text, ["a"]) is None, text


def test_an_id_has_at_most_2000_characters() -> None:
    longest = replace(CLAUDE, redirects=("a" * 1_360,))
    client_id = client_id_of(longest, "a")
    assert 1_998 <= len(client_id) <= 2_000
    assert registration_of(client_id, ["a"]) == longest
    longer = replace(CLAUDE, redirects=("a" * 1_361,))
    with pytest.raises(OAuthError, match="too long") as caught:
        client_id_of(longer, "a")
    assert caught.value.error == "invalid_client_metadata"


def test_the_answer() -> None:
    assert registration_answer(CLAUDE, "mcp_cl_x") == {
        "client_id": "mcp_cl_x",
        "client_id_issued_at": 1_764_000_000,
        "client_name": "Claude",
        "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
