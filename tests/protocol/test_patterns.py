from __future__ import annotations

import time

import pytest

from mcp_app.protocol.texts import takes_forever


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "^(?:a*)*$",
        "(a+)*?b",
        "((a+))+",
        "(a{2,}){3,}",
        r"^(\w+\s?)*$",
        r"^(\s?\w+)+$",
        "(x|a+)*",
        "((a+)?)+",
        "(?P<word>[a-z]+)+",
        "(?i:a+)+",
        "^(a|a)*$",
        "^(a|aa)+$",
        "(aa|aaa)+",
        r"(\w|\d)+",
        "([a-m]|[k-z])*",
        "(.|x)*",
    ],
)
def test_patterns_that_could_take_forever(pattern: str) -> None:
    assert takes_forever(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "^a+$",
        "^(a+)?$",
        "^(a+){2}$",
        "^(a+){1,3}$",
        r"^([a-z]+\.)+[a-z]+$",
        r"^[\w.]+@([\w-]+\.)+\w{2,}$",
        "^(ab*)+$",
        "^(a*b)*$",
        "(a|b)*",
        "(ab|cd)*",
        "(ab|ba)*",
        r"(\d|[a-z])*",
        # What Python reads in another way is not judged.
        r"(\p{L}|\p{Lu})*",
        "([a[b]|[a])*",
        # A look ahead reads nothing.
        "((?=a+)b)*",
        r"(\(+\))*x",
        "[(a+)+]",
        "\\",
        # Unbalanced, and repeating nothing.
        "a+)+",
        "((a+",
        "*a",
        "(|*)",
    ],
)
def test_patterns_that_do_not(pattern: str) -> None:
    assert not takes_forever(pattern)


@pytest.mark.parametrize("pattern", ["(" * 100_000, "(a|" * 50_000, "a?" * 100_000])
def test_long_patterns_are_read_once(pattern: str) -> None:
    # Of this thread alone: the machine may have other work.
    begin = time.thread_time()
    assert not takes_forever(pattern)
    assert time.thread_time() - begin < 20
