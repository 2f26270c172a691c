"""How property tests are run here, and where nobody would see what they drew."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.conftest import profile_for


@pytest.mark.parametrize(
    ("environment", "repeatable"),
    [
        ({}, False),
        ({"CI": ""}, False),
        ({"CI": "true"}, True),
        ({"REQUIRE_ALL": "0"}, False),
        ({"REQUIRE_ALL": "1"}, True),
    ],
)
def test_the_same_examples_are_drawn_where_all_is_required(
    environment: dict[str, str], repeatable: bool
) -> None:
    profile = settings.get_profile(profile_for(environment))
    assert (profile.derandomize, profile.deadline) == (repeatable, None)
