"""Each record is one line of JSON, whatever it says (T27)."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from typing import Any, Final

import pytest

from mcp_app.interface.logs import LARGEST, JsonFormatter

NASTY: Final = (
    "x\n2026-01-01 00:00:00 ERROR root login",
    "a\r\nb",
    "\x1b[2J\x1b]8;;http://evil.example\x07",
    "\u2028\u2029\x85",
    "\u202egnp.exe",
    "\x7f\x9b31m\0",
    '"}{"level": "CRITICAL"',
    "\ud83d",
    "\N{PARROT}" * 5_000,
    "x" * 10_000,
    "\n" * 10_000,
)


def written(message: str, *values: Any, extra: Mapping[str, Any] | None = None) -> str:
    record = logging.LogRecord("a.b", logging.INFO, "", 0, message, values, None)
    vars(record).update(extra or {})
    return JsonFormatter().format(record)


@pytest.mark.parametrize("text", NASTY)
def test_one_line_whatever_is_said(text: str) -> None:
    for line in (
        written(text),
        written("%s", text),
        written("said", extra={"reason": text}),
    ):
        assert line.isascii()
        assert line.isprintable()
        assert len(line.splitlines()) == 1
        found = json.loads(line)
        assert (found["level"], found["logger"]) == ("INFO", "a.b")
        told = found["reason"] if "reason" in found else found["message"]
        assert told == text or (told.endswith("...") and text.startswith(told[:-3]))
        assert len(json.dumps(told)) - 2 <= LARGEST


def test_a_name_of_a_field_is_no_longer_and_hides_none() -> None:
    found = json.loads(written("said", extra={"x" * 9_000: 1, "level": "CRITICAL"}))
    assert found["level"] == "INFO"
    assert max(map(len, found)) <= LARGEST


def test_values_of_all_kinds() -> None:
    values = {"a": 1, "b": 0.5, "c": None, "d": True, "e": [1], "f": 2**70}
    found = json.loads(written("said", extra=values))
    assert {name: found[name] for name in values} == {
        **values,
        "e": "[1]",
        "f": str(2**70),
    }


def test_the_end_of_an_exception() -> None:
    try:
        raise ValueError("x" * 3_000 + "\nthe end")
    except ValueError:
        record = logging.LogRecord("a", 40, "", 0, "failed", (), sys.exc_info())
    line = JsonFormatter().format(record)
    assert len(line.splitlines()) == 1
    told = json.loads(line)["exception"]
    assert told.endswith("the end")
    assert len(json.dumps(told)) - 2 <= LARGEST
