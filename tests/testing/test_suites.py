"""A site's own suite passes with each runner."""

from __future__ import annotations

import pytest

from tests.testing.running import MANAGE, PYTEST, run_suite


def test_by_manage_py() -> None:
    assert "Ran 21 tests" in run_suite(*MANAGE)


def test_of_the_demo() -> None:
    program = ("-m", "django", "test", "mcp_project.shop")
    assert "Ran 7 tests" in run_suite(*program, settings="mcp_project.settings")


def test_by_pytest() -> None:
    assert "32 passed" in run_suite(*PYTEST, "-p", "no:randomly")


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments",
    [
        (*MANAGE, "--parallel", "2"),
        (*MANAGE, "--shuffle"),
        (*PYTEST, "-n", "2"),
        (*PYTEST, "-p", "randomly"),
    ],
)
def test_side_by_side_and_in_any_order(arguments: tuple[str, ...]) -> None:
    run_suite(*arguments)
