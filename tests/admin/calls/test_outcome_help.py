"""The catalogues: every outcome, and every reason of a refusal, has its texts."""

from __future__ import annotations

import pytest

from mcp_app.admin.calls.outcome_help import MEANINGS, meaning_of, outcome_look
from mcp_app.admin.calls.rejected_requests import REFUSALS
from mcp_app.audit.turned_away import Reason
from mcp_app.interface.call_record import FAILED, FINE, REFUSED, Outcome

NEVER_SAID = ("please", "oops", "!", "endpoint", "payload", "invalid", "illegal")


def test_every_outcome_has_an_entry() -> None:
    assert set(MEANINGS) == set(Outcome)
    assert sorted((*FINE, *REFUSED, *FAILED)) == sorted(Outcome)


@pytest.mark.parametrize("outcome", Outcome)
def test_an_entry_says_what_it_is_and_what_to_do(outcome: Outcome) -> None:
    entry = MEANINGS[outcome]
    assert entry.label
    assert entry.means
    # Who reads of a failure is told what to do.
    assert entry.remedy or outcome == Outcome.ANSWERED
    assert (outcome_look(outcome) == "bad") is (outcome in FAILED)
    assert (outcome_look(outcome) == "warn") is (outcome in REFUSED)
    text = f"{entry.means} {entry.remedy}".lower()
    assert not [word for word in NEVER_SAID if word in text]


def test_labels_tell_outcomes_apart() -> None:
    labels = {str(each.label) for each in MEANINGS.values()}
    assert len(labels) == len(MEANINGS)


def test_an_outcome_of_a_later_release_is_named() -> None:
    assert meaning_of("rained_off").label == "rained_off"


def test_every_reason_has_an_entry() -> None:
    assert set(REFUSALS) == set(Reason)
    assert all(each.label and each.means and each.remedy for each in REFUSALS.values())
