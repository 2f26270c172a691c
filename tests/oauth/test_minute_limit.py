"""So many times a minute for each person."""

from __future__ import annotations

from mcp_app.oauth import clients
from mcp_app.oauth.clients import MinuteLimit


def test_each_person_has_a_limit() -> None:
    limit = MinuteLimit(2)
    assert [limit.take("ana", at) for at in (0, 1, 2, 59, 60.5)] == [
        *(True, True, False, False, True)
    ]
    assert limit.take("bert", 2)


def test_it_remembers_no_more_than_so_many_people() -> None:
    limit = MinuteLimit(1)
    for number in range(clients.MOST_PEOPLE + 2):
        assert limit.take(str(number), 0)
    assert len(limit._recent) <= clients.MOST_PEOPLE + 1
