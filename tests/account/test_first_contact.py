"""What came in since a token was made, and what was refused meanwhile."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from mcp_app.account.presentation import (
    MOST_REASONS,
    Contact,
    counts_of_text,
    counts_text,
    first_contact,
    own_token,
    refusals,
)
from mcp_app.audit.call_log import Reason
from mcp_app.interface.principal import ACCESS_TOKEN, Principal
from mcp_app.models import AccessToken
from mcp_app.models.workers import Report
from tests.account.conftest import Make
from tests.admin.operations.test_live import session

NOON: Final = datetime(2026, 11, 26, 12, tzinfo=UTC)
NOON_MS: Final = int(NOON.timestamp()) * 1_000
HOUR_MS: Final = 3_600_000


def report(*refused: tuple[int, str, str, int]) -> Report:
    return Report(refused=refused)


def test_refusals_of_all_processes_since_the_hour_began() -> None:
    reports = [
        report((NOON_MS, "nobody", "a", 2), (NOON_MS - HOUR_MS, "nobody", "a", 9)),
        report((NOON_MS, "nobody", "b", 1), (NOON_MS + HOUR_MS, "host", "", 4)),
        Report(),
    ]
    for minutes in (0, 59):
        since = NOON + timedelta(minutes=minutes)
        assert refusals(reports, since) == {"nobody": 3, "host": 4}
    assert refusals(reports, NOON + timedelta(hours=1)) == {"host": 4}


def test_counts_are_read_as_they_were_written() -> None:
    for counts in ({}, {"host": 1}, dict.fromkeys(map(str, Reason), 12)):
        assert counts_of_text(counts_text(counts)) == Counter(counts)


@pytest.mark.parametrize(
    "text", ["", "-", "host", "host.", ".1", "host.-1", "host.1.2", "HOST.1", "host.٣"]
)
def test_what_is_no_count_counts_as_nothing(text: str) -> None:
    assert counts_of_text(text) == Counter()
    assert counts_of_text(f"{text}-nobody.2") == {"nobody": 2}


def test_a_text_can_be_long() -> None:
    text = "-".join(f"{'x' * 20}.{number}" for number in range(100_000))
    assert len(counts_of_text(text)) <= MOST_REASONS


@pytest.mark.django_db
def test_only_one_s_own_token_is_found(ana: User, bert: User, token: Make) -> None:
    mine, hers = token(ana), token(bert)
    assert own_token(ana, mine.pk, "default") == mine
    assert own_token(ana, hers.pk, "default") is None
    assert own_token(ana, mine.pk + 100, "default") is None


@pytest.mark.databases
@pytest.mark.django_db
def test_the_newest_session_at_the_server_names_the_client(
    ana: User, token: Make
) -> None:
    row = token(ana)
    principal = Principal(kind=ACCESS_TOKEN, user_id=str(ana.pk), client=row.family)
    named = {"principal_key": principal.key, "server": "shop"}
    session(1, client_info='{"name": "new"}', revision="2025-06-18", **named)
    session(2, client_info='{"name": "old"}', seen_ms=5, **named)
    session(3, client_info='{"name": "x"}', **{**named, "server": "default"})
    session(4, client_info='{"name": "x"}', **{**named, "principal_key": "x"})
    found = own_token(ana, row.pk, "shop")
    assert found is not None
    assert first_contact(found) == Contact(None)
    AccessToken.objects.note_uses([row.pk], timezone.now())
    found = own_token(ana, row.pk, "shop")
    assert found is not None
    assert first_contact(found) == Contact(found.used, "new", "2025-06-18")
    elsewhere = own_token(ana, row.pk, "nowhere")
    assert elsewhere is not None
    assert first_contact(elsewhere) == Contact(found.used)
