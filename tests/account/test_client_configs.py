"""The table of clients: what people are told of each, and programs that run."""

from __future__ import annotations

import ast
import shlex
from datetime import date

import pytest
from django.test import override_settings

from mcp_app.account.client_configs import (
    CLIENTS,
    Guide,
    command_line,
    connection_guide,
    server_name,
)
from mcp_app.account.client_formats import TOKEN, ClientProgram

URL = "https://example.org/mcp"
FILLED = {"name": "NAME", "place": "PLACE"}


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> ClientProgram:
    return CLIENTS[request.param]


def test_the_table_has_the_clients_that_people_use() -> None:
    assert [*CLIENTS] == [
        *("claude-code", "claude", "claude-desktop", "chatgpt", "cursor", "vscode"),
        *("gemini", "windsurf", "zed", "codex", "python", "typescript", "curl"),
    ]


def test_each_says_what_to_do_and_how_one_sees_success(
    client: ClientProgram,
) -> None:
    assert client.title
    assert client.steps
    for each in (*client.steps, *client.token_steps, client.check):
        assert str(each) % FILLED
        assert "%" not in str(each) % FILLED
    assert date(2026, 1, 1) <= client.month_checked <= date.today()


def test_each_client_says_where_its_text_goes(client: ClientProgram) -> None:
    assert not (client.file and client.elsewhere)
    assert bool(client.place_for_people) is not client.signs_in
    assert not client.file.startswith(("/", "~", ".."))


def test_what_takes_a_token_gets_it_and_no_other_does(
    client: ClientProgram,
) -> None:
    text = client.http_text("site", URL, token="mcp_x")
    asks = client.title == "VS Code"
    assert ("mcp_x" in text) is not (client.signs_in or asks)
    assert URL in text
    bare = client.http_text("site", URL)
    assert "Bearer" not in bare
    assert "Authorization" not in bare


def test_each_of_our_links_is_of_a_client_of_its_own(client: ClientProgram) -> None:
    if client.link is not None:
        scheme = client.link("site", URL, TOKEN).partition(":")[0]
        assert CLIENTS[scheme] is client


def test_a_line_for_a_terminal() -> None:
    line = command_line("my site", URL, "mcp_x")
    assert shlex.split(line) == [
        *("claude", "mcp", "add", "--transport", "http", "my site", URL),
        *("--header", "Authorization: Bearer mcp_x"),
    ]
    assert "--header" not in command_line("site", URL, "")


@pytest.mark.parametrize("token", ["", 'm"c\\p\n'])
def test_a_program_is_one_whatever_is_in_it(token: str) -> None:
    tree = ast.parse(CLIENTS["python"].http_text("site", URL, token=token))
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    assert values == {"URL": URL, "HEADERS": headers}


def test_the_line_for_curl_is_one_command() -> None:
    text = CLIENTS["curl"].http_text("site", f"{URL}?a='b c'", token="mcp_x")
    words = shlex.split(text.replace("\\\n", ""))
    assert words[:4] == ["curl", "--silent", "--show-error", f"{URL}?a='b c'"]
    assert words[4:6] == ["--header", "Authorization: Bearer mcp_x"]


# -- addresses -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("urls", "slug", "name"),
    [
        ("my_shop.urls", "default", "my-shop"),
        ("my_shop.urls", "office", "my-shop-office"),
        ("shop", "default", "shop"),
    ],
)
def test_a_name(urls: str, slug: str, name: str) -> None:
    with override_settings(ROOT_URLCONF=urls):
        assert server_name(slug) == name


# -- guides ----------------------------------------------------------------------------


GUIDES_URL = "https://example.org/mcp/shop"
SECRET = "mcp_secret"


def guide(key: str, token: str = "", *, needed: bool = True) -> Guide:
    return connection_guide(key, "shop", GUIDES_URL, token=token, takes_token=needed)


@pytest.mark.parametrize("key", CLIENTS)
def test_sentences_are_filled_in(key: str) -> None:
    found = guide(key)
    said = " ".join([*found["steps"], found["check"]])
    assert "%" not in said
    client = CLIENTS[key]
    texts = map(str, [*client.steps, *client.token_steps, client.check])
    assert (server_name("shop") in said) == ("%(name)s" in " ".join(texts))
    assert (found["key"], found["title"]) == (key, client.title)


@pytest.mark.parametrize("key", CLIENTS)
def test_a_token_is_in_texts_and_in_no_link(key: str) -> None:
    before, after = guide(key), guide(key, SECRET)
    assert after["text"] == before["text"].replace(TOKEN, SECRET)
    assert after["line"] == before["line"].replace(TOKEN, SECRET)
    assert after["link"] == before["link"]
    assert SECRET not in after["link"]
    # An error page shows none among its variables.
    assert SECRET not in repr(after)


@pytest.mark.parametrize("key", CLIENTS)
def test_without_a_token_nothing_speaks_of_one(key: str) -> None:
    found = guide(key, SECRET, needed=False)
    written = found["text"] + found["line"] + found["link"]
    assert SECRET not in written
    assert TOKEN not in written
    assert len(found["steps"]) == len(CLIENTS[key].steps)
