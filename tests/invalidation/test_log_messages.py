"""Log messages to the sessions of a user, or of a server."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from mcp_app import alog, log
from mcp_app.interface.log_secrets import BLOT
from mcp_app.interface.principal import Principal
from mcp_app.models import Change, LoggedMessage, Session
from mcp_app.models.streams import LOGGED
from mcp_app.models.transactions import NowMilliseconds
from tests.models.test_sessions import session

pytestmark = pytest.mark.django_db


def of(user: object, **columns: Any) -> Session:
    key = Principal(kind="user", user_id=str(user), client=uuid4().hex).key
    now = NowMilliseconds()
    named = {"streams": 1, "principal_key": key, "created_ms": now, "seen_ms": now}
    named |= columns
    return session(uuid4().hex, **named)


def told() -> list[int]:
    rows = LoggedMessage.objects.order_by("session_id")
    return list(rows.values_list("session_id", flat=True))


def test_a_users_sessions() -> None:
    anna = User.objects.create(username="anna")
    own, _ = [of(anna.pk) for _ in range(2)], of(anna.pk + 1)
    assert log("info", {"done": 3}, user=anna, logger="shop") == 2
    assert told() == [each.pk for each in own]
    assert json.loads(LoggedMessage.objects.all()[0].payload) == {
        "jsonrpc": "2.0",
        "method": "notifications/message",
        "params": {"level": "info", "data": {"done": 3}, "logger": "shop"},
    }
    assert log("info", "again", user=anna.pk) == 2
    assert log("info", "nobody", user=0) == 0


def test_t17_secrets_are_not_stored() -> None:
    of(1)
    data = {"headers": [{"Cookie": "a=b"}], "text": "Basic dXNlcjpwYXNz"}
    assert log("info", data, user=1) == 1
    payload = LoggedMessage.objects.get().payload
    assert json.loads(payload)["params"]["data"] == {
        "headers": [{"Cookie": BLOT}],
        "text": BLOT,
    }


def test_a_servers_sessions() -> None:
    there, _ = of(1, server="shop"), of(1)
    assert log("info", "x", server="shop") == 1
    assert told() == [there.pk]
    assert log("info", "x", server="shop", user=2) == 0


@pytest.mark.parametrize(
    ("wanted", "level", "count"),
    [
        (None, "debug", 0),
        (None, "info", 1),
        (0, "debug", 1),
        (4, "warning", 0),
        (4, "error", 1),
    ],
)
def test_levels(wanted: int | None, level: Any, count: int) -> None:
    of(1, log_level=wanted)
    assert log(level, "x", user=1) == count


def test_who_never_had_a_stream_is_told_nothing() -> None:
    of(1, streams=0)
    assert log("info", "x", user=1) == 0


def test_a_user_is_no_part_of_another() -> None:
    own, _, _ = of("a_b"), of("axb"), of("A_B")
    key = Principal(kind="site", user_id="c", client="a_b\x1f").key
    of("c", principal_key=key)
    assert log("info", "x", user="a_b") == 1
    assert told() == [own.pk]


def test_many_sessions_cost_few_statements() -> None:
    own = [of(7) for _ in range(300)]
    for _ in range(20):
        of(8, capabilities="{}")
    change = "mcp_app_change"
    with transaction.atomic(), CaptureQueriesContext(connection) as said:
        assert log("info", "x", user=7) == 300
        assert log("info", "again", user=7) == 300
    assert len(said) <= 12
    assert not [each["sql"] for each in said if "capabilities" in each["sql"]]
    writing = [
        each for each in said if each["sql"].startswith(f'INSERT INTO "{change}')
    ]
    assert len(writing) <= 1
    refs = Change.objects.filter(kind=LOGGED).values_list("ref", flat=True)
    assert sorted(refs) == sorted(str(each.pk) for each in own)


def test_large_messages_are_inserted_a_few_at_once() -> None:
    for _ in range(20):
        of(7)
    with CaptureQueriesContext(connection) as said:
        assert log("info", "x" * 100_000, user=7) == 20
    lengths = [len(each["sql"]) for each in said]
    assert max(lengths) < 600 * 1024
    assert len(told()) == 20


def test_a_message_that_is_too_large_is_refused_before_anything() -> None:
    of(7)
    with CaptureQueriesContext(connection) as said:
        sentence = r'262,\d\d\d bytes, but MCP\["LIMITS"\]\["TEXT"\] allows 262,144\.'
        with pytest.raises(ValueError, match=sentence):
            log("info", "x" * 262_144, user=7)
    assert len(said) == 0


@override_settings(MCP={"LIMITS": {"session_idle": 60, "session_age": 120}})
def test_who_is_idle_or_too_old_is_told_nothing() -> None:
    ago = {seconds: NowMilliseconds() - 1_000 * seconds for seconds in (50, 70, 130)}
    of(1, seen_ms=ago[70])
    of(1, created_ms=ago[130])
    assert log("info", "x", user=1) == 0
    of(1, seen_ms=ago[50], created_ms=ago[70])
    assert log("info", "x", user=1) == 1


def test_what_cannot_be_said() -> None:
    with pytest.raises(ValueError, match=r"'loud' is not a level\. Use one of debug"):
        log("loud", "x", user=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="whose sessions"):
        log("info", "x")
    with pytest.raises((ValueError, TypeError)):
        log("info", object(), user=1)


@pytest.mark.django_db(transaction=True)
async def test_from_a_coroutine() -> None:
    assert await alog("info", "x", user=1, server="default", logger="l") == 0
