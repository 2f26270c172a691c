"""The faults that programs of the drill can have: each replaces what there is."""

from __future__ import annotations

import pytest

from tests.drill.faults import FAULTS


@pytest.mark.parametrize("name", FAULTS)
def test_each_replaces_what_there_is(name: str) -> None:
    for owner, attribute, _fault in FAULTS[name]:
        assert callable(getattr(owner, attribute))
