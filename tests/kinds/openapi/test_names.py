"""Words of documents become names, each once."""

from __future__ import annotations

import pytest

from mcp_app.kinds.openapi.reading import LONGEST_NAME, Names, argument_name, snake_case


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("listPets", "list_pets"),
        ("HTTPServerList", "http_server_list"),
        ("get /a/{b}", "get_a_b"),
        ("a--b", "a_b"),
        ("x" * 100, "x" * 64),
        ("été", "t"),
    ],
)
def test_names_of_tools(text: str, name: str) -> None:
    assert snake_case(text) == name


def test_names_of_very_long_texts() -> None:
    assert snake_case("A" * 80_000) == "a" * LONGEST_NAME


@pytest.mark.parametrize(
    ("text", "name"), [("a b", "a_b"), ("é", "ue9"), ("1a", "_1a"), ("X-A", "X-A")]
)
def test_names_of_arguments(text: str, name: str) -> None:
    assert argument_name(text) == name


def test_each_name_once() -> None:
    names = Names({"b", "b_2"})
    assert [names.take("a") for _ in range(3)] == ["a", "a_2", "a_3"]
    assert [names.take("b"), names.take("b_3"), names.take("b")] == [
        "b_3",
        "b_3_2",
        "b_4",
    ]


def test_many_names_that_begin_alike() -> None:
    names = Names()
    given = [names.take("a" * 62 + end) for end in ("bb", "cc") for _ in range(20_000)]
    assert len({*given}) == 40_000
    assert {len(each) for each in given} == {LONGEST_NAME}
    assert given[-1] == "a" * 58 + "_39999"
