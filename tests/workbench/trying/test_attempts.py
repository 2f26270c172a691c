"""Who may try what, as whom: the whole table."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from mcp_app.kinds import Effect
from mcp_app.workbench.trying.attempts import As, Attempt, refusal_of_attempt

PUBLISH = "Only who may publish runs a working copy for real."
RIGHT = "This needs the right “Can try as another user”."
SUPERUSER = "Only a superuser can try as a superuser."
PUBLISHED = "Only the published version is run as somebody else."
READS = "Only what reads is run as somebody else."
DRY = "As somebody else there are only dry runs."
FREE = {
    "is_working_copy": False,
    "is_dry": True,
    "only_reads": True,
    "effect": Effect.DATABASE,
    "may_publish": False,
    "may_try_as": True,
    "is_superuser": False,
}


WRITES_ELSEWHERE = {"effect": Effect.ELSEWHERE, "is_dry": False, "only_reads": False}


def attempt(who: As, **changes: Any) -> Attempt:
    return Attempt(who=who, **{**FREE, **changes})


@pytest.mark.parametrize("who", [As.ME, As.TOKEN, As.NOBODY])
def test_oneself_or_nobody(who: As) -> None:
    """Only a working copy in earnest needs more than the right to try."""
    every = product((True, False), (True, False), (True, False), (True, False), Effect)
    for working, dry, reads, publish, effect in every:
        some = {"is_working_copy": working, "is_dry": dry, "only_reads": reads}
        rest = {"may_publish": publish, "may_try_as": False, "effect": effect}
        told = refusal_of_attempt(attempt(who, **some, **rest))
        is_real = effect is not Effect.NOTHING and not dry
        assert told.startswith(PUBLISH) == (working and is_real and not publish)
        assert bool(told) == told.startswith(PUBLISH)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"may_try_as": False}, RIGHT),
        ({"may_try_as": False, "is_superuser": True}, RIGHT),
        ({"as_superuser": True}, SUPERUSER),
        ({"as_superuser": True, "is_superuser": True}, ""),
        ({"is_working_copy": True}, PUBLISHED),
        ({"is_working_copy": True, "may_publish": True}, PUBLISHED),
        ({"is_working_copy": True, "is_superuser": True}, PUBLISHED),
        ({"only_reads": False}, READS),
        ({"only_reads": False, "is_superuser": True}, ""),
        ({"is_dry": False}, DRY),
        ({"is_dry": False, "is_superuser": True}, DRY),
        ({"is_dry": False, "may_publish": True}, DRY),
        ({"effect": Effect.NOTHING, "is_dry": False}, ""),
        ({"effect": Effect.ELSEWHERE, "is_dry": False}, ""),
        (WRITES_ELSEWHERE, READS),
        ({**WRITES_ELSEWHERE, "is_superuser": True}, DRY),
    ],
)
def test_another_user(changes: dict[str, Any], said: str) -> None:
    assert refusal_of_attempt(attempt(As.USER, **changes)) == said


def test_nothing_is_changed_as_another_user() -> None:
    """Whatever somebody may do, and whoever they are."""
    flags = product((True, False), repeat=6)
    names = ("is_working_copy", "only_reads", "may_publish", "is_superuser")
    for *some, dry, superuser in flags:
        for effect in (Effect.DATABASE, Effect.ELSEWHERE):
            given = dict(zip(names, some, strict=True))
            tried = attempt(
                As.USER, **given, is_dry=dry, as_superuser=superuser, effect=effect
            )
            if not refusal_of_attempt(tried):
                assert dry or (effect is Effect.ELSEWHERE and tried.only_reads)
                assert tried.only_reads or tried.is_superuser
                assert not tried.is_working_copy
                assert tried.is_superuser or not superuser
