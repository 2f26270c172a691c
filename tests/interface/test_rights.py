"""Who meets demands."""

from __future__ import annotations

import pytest

from mcp_app.interface.principal import NOTHING, Rights
from mcp_app.interface.rules import NO_REQUIREMENTS, AccessRequirements

VIEW = AccessRequirements(permissions=("shop.view",))
STAFF = AccessRequirements(groups=(frozenset({"Support", "Finance"}),))


@pytest.mark.parametrize(
    ("demands", "meets"),
    [
        (None, True),
        (NO_REQUIREMENTS, True),
        (VIEW, True),
        (STAFF, False),
        # To meet one of two is not to meet both together.
        (VIEW.and_also(STAFF), False),
    ],
)
def test_who_meets_demands(demands: AccessRequirements | None, meets: bool) -> None:
    assert Rights(frozenset({VIEW})).meet(demands) is meets


def test_nobody_has_a_right() -> None:
    assert not NOTHING.meet(VIEW)
    assert NOTHING.meet(NO_REQUIREMENTS)
    assert not NOTHING.gone
