"""Refused requests: what processes say, added up, with its meaning and remedy."""

from __future__ import annotations

import pytest
from django.test import Client

from mcp_app.audit.turned_away import OTHERS, Reason
from mcp_app.models import Worker
from tests.admin.calls.rows import HOUR, now_ms
from tests.admin.operations.test_live import worker
from tests.admin.pages import Queries, Staff, page, text_of, words_of

pytestmark = pytest.mark.django_db


HOSTILE = "<img src=x onerror=alert(1)>\u202e"


def shown(client: Client) -> str:
    return words_of(client, page("call", "refused"))


def hour_ms(ago: int = 0) -> int:
    now = now_ms()
    return now - now % HOUR - ago * HOUR


def test_where_nothing_runs_nothing_is_known(admin_client: Client) -> None:
    assert "No process is running, so there are no numbers." in shown(admin_client)
    worker()
    assert "Nothing was refused." in shown(admin_client)


def test_processes_are_added_up(
    staff: Staff, django_assert_max_num_queries: Queries
) -> None:
    worker("a", refused=((hour_ms(), Reason.HOST, "curl/8", 2),))
    worker("b", refused=((hour_ms(), Reason.HOST, "curl/8", 3),))
    worker("b2", refused=((hour_ms(1), Reason.CREDENTIALS, "", 1),))
    worker("dead", age_ms=HOUR, refused=((hour_ms(), Reason.JSON, "gone", 7),))
    client = staff("view_call")
    with django_assert_max_num_queries(7):
        text = shown(client)
    assert "Counted in memory by 3 processes" in text
    assert 'data-label="Client" class="mcp-word">curl/8<' in text
    assert 'class="mcp-number">5<' in text
    assert text.index("Wrong host") < text.index("Not let in")
    assert "Add the host name to ALLOWED_HOSTS" in text
    assert 'data-label="Client" class="mcp-word">unknown<' in text
    assert "gone" not in text


def test_what_others_wrote_is_no_markup(admin_client: Client) -> None:
    worker("a", refused=((hour_ms(), "rained_off", HOSTILE, 2),))
    answer = text_of(admin_client, page("call", "refused"))
    assert HOSTILE[:-1] not in answer
    assert "\u202e" not in answer
    assert "⟦U+202E⟧" in answer
    assert "Refused for a reason that this page does not know." in answer


def test_clients_that_are_not_told_apart(admin_client: Client) -> None:
    worker("a", refused=((hour_ms(), Reason.HOST, OTHERS, 2),))
    assert 'data-label="Client" class="mcp-word">others<' in shown(admin_client)


def test_a_process_of_an_older_release_says_nothing(admin_client: Client) -> None:
    worker("a")
    Worker.objects.update(report='{"code": "x"}')
    assert "Nothing was refused." in shown(admin_client)
