from __future__ import annotations

import shutil
from typing import Any

import pytest

from benchmarks import load, servers
from benchmarks.client import WrongAnswerError
from benchmarks.load import Answer
from benchmarks.messages import call, has_tools, is_sum, is_text

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is not installed"),
]

SUM = {"content": [{"type": "text", "text": "5"}], "structuredContent": {"result": 5}}
SUM_BODY = b'{"jsonrpc":"2.0","id":100000000,"result":{"structuredContent":5}}'


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"content": SUM["content"]},
        {"structuredContent": SUM["structuredContent"]},
        {**SUM, "content": [{"type": "text", "text": "6"}]},
        {**SUM, "content": [{"type": "text", "text": "5"}] * 2},
        {**SUM, "structuredContent": {"result": 6}},
        {**SUM, "structuredContent": {"result": "5"}},
        {**SUM, "structuredContent": {"result": 5, "more": 0}},
        {**SUM, "isError": True},
    ],
)
def test_a_wrong_sum_is_seen(result: dict[str, Any]) -> None:
    assert is_sum(SUM)
    assert not is_sum(result)


def test_other_wrong_results_are_seen() -> None:
    assert is_text("me")({"content": [{"type": "text", "text": "me"}]})
    assert not is_text("me")({"content": [{"type": "text", "text": "you"}]})
    assert has_tools(1)({"tools": [{}]})
    assert not has_tools(1)({"tools": [{}, {}]})
    assert not has_tools(1)({"tools": [{}], "nextCursor": "more"})


@pytest.mark.parametrize(
    "body", [SUM_BODY.replace(b"100000000", b"1"), SUM_BODY + SUM_BODY]
)
def test_an_answer_without_its_id_is_no_pattern(body: bytes) -> None:
    with pytest.raises(WrongAnswerError, match="does not stand once"):
        Answer.cut(body, [])


def test_a_floor_repeats_the_answer_with_each_id() -> None:
    answer = Answer.cut(SUM_BODY, [("x-kept", "yes"), ("date", "left out")])
    with servers.floor(answer) as floor:
        learned = Answer.learned(floor.port, call("drill_add"), bool)
        sample = load.run(floor, call("drill_add"), answer, seconds=1)
    assert (learned.before, learned.after) == (answer.before, answer.after)
    assert ("x-kept", "yes") in learned.headers
    assert ("date", "left out") not in learned.headers
    assert sample.calls > 0
    assert 0 < sample.p50 <= sample.p99
    assert sample.cpu_per_call > 0


@pytest.mark.parametrize(
    ("lie", "seen"),
    [
        ("sum", r"'wrong': \d+}.*200 .*\"result\": 6"),
        ("answered before", r"'wrong': \d+}.*200 "),
        ("status", r"'wrong': \d+}.*500 .*\"result\": 5"),
        ("exception", r"'wrong': \d+.*500 Internal Server Error"),
    ],
)
def test_one_wrong_answer_in_a_hundred_voids_a_run(lie: str, seen: str) -> None:
    with servers.application("tests.benchmarks.liar", "uvicorn", {"LIE": lie}) as liar:
        answer = Answer.learned(liar.port, call("drill_add"), is_sum)
        with pytest.raises(WrongAnswerError, match=seen):
            load.run(liar, call("drill_add"), answer, seconds=1)


def test_a_server_that_ends_voids_a_run() -> None:
    answer = Answer.cut(SUM_BODY, [])
    with servers.floor(answer) as floor:
        pass
    with pytest.raises(WrongAnswerError):
        load.run(floor, call("drill_add"), answer, seconds=1)
