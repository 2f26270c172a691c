"""Paths as documents write them, with more behind them."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.kinds.openapi.reading import split_path, style_of
from tests.kinds.openapi.test_offers import offer, parameter


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("/a/{b}", ("/a/{b}", [])),
        ("/a?b=1&c=", ("/a", [("b", "1"), ("c", "")])),
        ("/#X-Amz-Target=Certificates.Add", ("/", [])),
        ("/a?b=%20#c?d=1", ("/a", [("b", " ")])),
    ],
)
def test_split_path(path: str, parts: Any) -> None:
    assert split_path(path) == parts


def test_an_operation_with_more_behind_its_path() -> None:
    added = offer({"operationId": "add"}, path="/rows?do=add&id=7#one")
    assert (added.bar, added.config["path"]) == ("", "/rows")
    assert added.config["query"] == [
        {"name": "do", "value": "add"},
        {"name": "id", "value": "7"},
    ]
    own = offer({"parameters": [parameter("id")]}, path="/rows?do=add&id=7")
    assert own.config["query"] == [
        {"name": "do", "value": "add"},
        {"name": "id", "value": "{{id}}"},
    ]
    open_ended = offer({}, path="/rows?term={term}")
    assert open_ended.bar == (
        "it cannot be called: “{term}” is not replaced. Write {{term}}."
    )


def test_a_style_that_is_no_text() -> None:
    assert style_of({"style": []}) is None
