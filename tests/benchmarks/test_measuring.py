from __future__ import annotations

import pytest

from benchmarks.__main__ import main
from benchmarks.load import Sample
from benchmarks.measuring import AtLeast, AtMost, Medians, Result


@pytest.mark.parametrize(
    ("measured", "bound", "ok"),
    [
        (0.5, AtLeast(0.5), True),
        (0.49, AtLeast(0.5), False),
        (1.15, AtMost(1.15), True),
        (1.16, AtMost(1.15), False),
    ],
)
def test_a_bound_is_kept_or_missed(
    measured: float, bound: AtLeast | AtMost, ok: bool
) -> None:
    assert Result(figure="x", measured=measured, bound=bound).ok is ok


def test_medians_are_of_each_number_by_itself() -> None:
    samples = [
        Sample(
            calls=1,
            calls_per_second=rate,
            cpu_per_call=cpu,
            kernel_per_call=cpu / 2,
            p50=1,
            p99=p99,
            p999=p99,
            longest=p99,
            late=0,
        )
        for rate, cpu, p99 in [(1, 9, 5), (2, 7, 50), (300, 8, 6)]
    ]
    medians = Medians(samples)
    assert (medians.rate, medians.cpu, medians.p99) == (2, 8, 6)


def test_a_name_that_is_no_figure_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # A part of a name is none: "log" is in "catalog".
    assert main(["--only", "nothing|cata"]) == 2
    assert "there are: control, calls, audit" in capsys.readouterr().err
