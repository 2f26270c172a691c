"""Which cases are left to `make test-all`.

`pytest.mark.long` takes a module, a function or a single case out of `make test`.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from _pytest.mark.structures import ParameterSet


def long_cases(*values: Any) -> list[ParameterSet]:
    """Return cases of `parametrize` that only `make test-all` runs.

    @pytest.mark.parametrize("server", ["uvicorn", *long_cases("daphne", "granian")])

    A tuple holds the values of several parameters.
    """
    return [
        pytest.param(
            *(each if isinstance(each, tuple) else (each,)), marks=pytest.mark.long
        )
        for each in values
    ]


STATEFUL_NEWEST_FIRST: Final = [
    "2025-11-25",
    *long_cases("2025-06-18", "2025-03-26", "2024-11-05"),
]
"""For what is the same in each revision that has sessions."""

NEWEST_FIRST: Final = ["2026-07-28", *STATEFUL_NEWEST_FIRST]
"""For what is the same in each revision of an era.

What depends on `Revision.fields`, or has a date in it, is tried in all of them.
"""
