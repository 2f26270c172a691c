"""Who meets demands."""

from __future__ import annotations

import pytest

from mcp_app.interface.requirements import NO_DEMANDS, Demands
from mcp_app.interface.rights import NOTHING, Rights

VIEW = Demands(permissions=("shop.view",))
STAFF = Demands(groups=(frozenset({"Support", "Finance"}),))


@pytest.mark.parametrize(
    ("demands", "meets"),
    [
        (None, True),
        (NO_DEMANDS, True),
        (VIEW, True),
        (STAFF, False),
        # To meet one of two is not to meet both together.
        (VIEW.and_also(STAFF), False),
    ],
)
def test_who_meets_demands(demands: Demands | None, meets: bool) -> None:
    assert Rights(frozenset({VIEW})).meet(demands) is meets


def test_nobody_has_a_right() -> None:
    assert not NOTHING.meet(VIEW)
    assert NOTHING.meet(NO_DEMANDS)
    assert not NOTHING.gone
