"""T2: ids of sessions cannot be guessed, and are kept by their digests alone."""

from __future__ import annotations

from mcp_app.models import Session
from mcp_app.models.fields import digest
from mcp_app.pools.database import reader
from mcp_app.streams.open_session import new_session_id
from tests.serving import Connect


def test_ten_thousand_ids() -> None:
    ids = {new_session_id() for _ in range(10_000)}
    assert len(ids) == 10_000
    assert {len(each) for each in ids} == {43}
    assert all("!" <= character <= "~" for each in ids for character in each)
    # Each place has what it may have: there is no part that says something.
    assert all(len({each[at] for each in ids}) >= 60 for at in range(42))


async def test_a_row_has_the_digest_alone(connect: Connect) -> None:
    client = await connect("2025-11-25")
    values = await reader.run(list, Session.objects.values())
    assert client.session is not None
    assert [each["digest"] for each in values] == [digest(client.session)]
    assert client.session not in str(values)
