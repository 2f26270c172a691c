from __future__ import annotations

import pytest

from benchmarks.figures.latency import NAMES, Run, Waits, compared
from benchmarks.load import Sample


def run(**p99: float) -> Run:
    return {
        name: Waits(
            [
                Sample(
                    calls=100,
                    calls_per_second=1,
                    cpu_per_call=1,
                    kernel_per_call=1,
                    p50=1,
                    p99=each,
                    p999=2 * each,
                    longest=3 * each,
                    late=2,
                )
                for each in (p99.get(name, 100), p99.get(name, 100), 9_999)
            ]
        )
        for name in NAMES
    }


def test_a_tail_that_is_too_long_misses_its_bound() -> None:
    results = list(compared([run(SDK=150, SQLite=160, PostgreSQL=150)] * 3))
    assert len(results) == 3 * len(NAMES) + 3
    assert results[0].raw == (
        "p50 1, p99.9 200, longest 29,997 us, 6 of 300 above 20 ms"
    )
    verdicts = {each.figure: each.ok for each in results[-3:]}
    assert verdicts == {
        "p99: no call log / SDK": False,
        "p99: call log in SQLite / none": False,
        "p99: call log in PostgreSQL / none": True,
    }


@pytest.mark.parametrize(("highest", "sure"), [(125, True), (126, False)])
def test_there_is_no_verdict_where_the_floor_differs(highest: int, sure: bool) -> None:
    runs = [run(SQLite=900), run(SQLite=900), run(SQLite=900, floor=highest)]
    judged = list(compared(runs))[-2]
    assert judged.ok is not sure
    assert ("cannot tell" in judged.raw) is not sure
