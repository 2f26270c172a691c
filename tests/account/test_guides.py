"""What a page says about a client and a server."""

from __future__ import annotations

import pytest

from mcp_app.account.client_configs import CLIENTS, Guide, guide_of, server_name
from mcp_app.account.client_formats import TOKEN

URL = "https://example.org/mcp/shop"
SECRET = "mcp_secret"


def guide(key: str, token: str = "", *, takes_token: bool = True) -> Guide:
    return guide_of(key, "shop", URL, token=token, takes_token=takes_token)


@pytest.mark.parametrize("key", CLIENTS)
def test_sentences_are_filled_in(key: str) -> None:
    found = guide(key)
    said = " ".join([*found.steps, found.check])
    assert "%" not in said
    assert (server_name("shop") in said) == ("%(name)s" in _sentences(key))
    assert (found.key, found.title) == (key, CLIENTS[key].title)


def _sentences(key: str) -> str:
    client = CLIENTS[key]
    return " ".join(map(str, [*client.steps, *client.token_steps, client.check]))


@pytest.mark.parametrize("key", CLIENTS)
def test_a_token_is_in_texts_and_in_no_link(key: str) -> None:
    before, after = guide(key), guide(key, SECRET)
    assert after.text == before.text.replace(TOKEN, SECRET)
    assert after.line == before.line.replace(TOKEN, SECRET)
    assert after.link == before.link
    assert SECRET not in after.link
    # An error page shows none among its variables.
    assert SECRET not in repr(after)


@pytest.mark.parametrize("key", CLIENTS)
def test_without_a_token_nothing_speaks_of_one(key: str) -> None:
    found = guide(key, SECRET, takes_token=False)
    written = found.text + found.line + found.link
    assert SECRET not in written
    assert TOKEN not in written
    assert len(found.steps) == len(CLIENTS[key].steps)
