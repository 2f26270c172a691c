"""A ticket is good for one run of one person."""

from __future__ import annotations

import pytest

from mcp_app.models import Prompt, Tool
from mcp_app.workbench.trying import tickets
from mcp_app.workbench.trying.tickets import NoTicket, claim_ticket, new_ticket

pytestmark = [pytest.mark.django_db]

ROW = Tool(pk=7)


def test_it_is_good_once() -> None:
    text = new_ticket(1, ROW)
    assert claim_ticket(text, 1, ROW) is None
    used = claim_ticket(text, 1, ROW)
    assert used is not None
    assert claim_ticket(text, 1, ROW) == used
    assert claim_ticket(new_ticket(1, ROW), 1, ROW) is None


@pytest.mark.parametrize(
    ("user", "row"),
    [(2, ROW), ("1 ", ROW), (1, Tool(pk=8)), (1, Tool(pk=77)), (1, Prompt(pk=7))],
)
def test_of_another_person_or_row(user: object, row: Tool | Prompt) -> None:
    text = new_ticket(1, ROW)
    with pytest.raises(NoTicket):
        claim_ticket(text, user, row)
    assert claim_ticket(text, 1, ROW) is None


def test_an_altered_one_is_none() -> None:
    text = new_ticket(1, ROW)
    for at, character in enumerate(text):
        for bit in range(7):
            other = chr(ord(character) ^ (1 << bit))
            altered = text[:at] + other + text[at + 1 :]
            try:
                claim_ticket(altered, 1, ROW)
            except NoTicket:
                continue
            raise AssertionError(f"{altered} was taken for {text}")
    assert claim_ticket(text, 1, ROW) is None


@pytest.mark.parametrize("text", ["", "a", ":::", "\0", "\ud800", "é" * 10_000])
def test_no_ticket_at_all(text: str) -> None:
    with pytest.raises(NoTicket):
        claim_ticket(text, 1, ROW)


def test_one_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    text = new_ticket(1, ROW)
    monkeypatch.setattr(tickets, "GOOD_FOR_S", -1)
    with pytest.raises(NoTicket):
        claim_ticket(text, 1, ROW)
