"""What became of a dry run, and how it is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.utils import translation

from mcp_app.workbench.trying.dry_run_outcome import (
    DryRunOutcome,
    Ending,
    Remark,
    unreachable,
)

NOT_UNDONE = {each for each in Ending if each.value not in ("undone", "unreachable")}


@pytest.fixture(autouse=True)
def _in_english() -> Iterator[None]:
    with translation.override("en"):
        yield


@pytest.mark.parametrize("ending", Ending)
def test_all_is_undone_only_where_that_is_certain(ending: Ending) -> None:
    outcome = DryRunOutcome(endings={"archive": ending})
    assert outcome.undone is (ending not in NOT_UNDONE)


@pytest.mark.parametrize("ending", sorted(NOT_UNDONE, key=str))
def test_one_database_is_enough(ending: Ending) -> None:
    there = {"archive": ending, "default": Ending.UNREACHABLE}
    outcome = DryRunOutcome(endings=there)
    assert not outcome.undone
    sentences = outcome.sentences()
    assert "“archive”" in sentences[0]
    assert sentences[1] == unreachable("default")
    assert not any("All that it wrote" in each for each in sentences)


def test_what_is_told_of_a_commit() -> None:
    outcome = DryRunOutcome(endings={"default": Ending.COMMITTED})
    (sentence,) = outcome.sentences()
    assert sentence.startswith("It committed by itself. What it wrote stays.")


def test_what_else_is_told() -> None:
    outcome = DryRunOutcome(
        topics=("tools", "shop://100%"),
        refusals=("COMMIT", "BEGIN"),
        remarks=(Remark.DURABLE,),
    )
    first, refusals, remark, topics = outcome.sentences()
    assert first == "All that it wrote to the databases in its own thread was undone."
    assert refusals.endswith("It refused: COMMIT, BEGIN.")
    assert "durable" in remark
    assert topics == "It would tell clients: tools, shop://100%"


def test_each_remark_has_a_sentence_of_its_own() -> None:
    sentences = {DryRunOutcome(remarks=(each,)).sentences()[1] for each in Remark}
    assert len(sentences) == len(Remark)
    assert all(each.endswith(".") for each in sentences)
