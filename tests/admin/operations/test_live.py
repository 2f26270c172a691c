"""What happens now: what the page shows, to whom, and what can be ended there."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.test import Client
from django.urls import reverse

from mcp_app.admin.operations import live, live_parts
from mcp_app.interface.principal import Principal
from mcp_app.models import Change, Session, Stop, Stream, Worker
from mcp_app.models.fields import digest
from mcp_app.models.stops import By, Scope
from mcp_app.models.streams import Event
from mcp_app.models.transactions import NowMilliseconds
from mcp_app.models.workers import Report
from mcp_app.server.request_digests import request_key
from tests.admin.calls.rows import write
from tests.admin.pages import Queries, Staff, page, text_of, words_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("slept")]


MARKUP = "<img src=x onerror=alert(1)>"
NONE = "\N{EN DASH}"
MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def worker(name: str = "w", age_ms: int = 0, **report: Any) -> Worker:
    return Worker.objects.create(
        id=name,
        host=f"host-{name}",
        pid=7,
        started_ms=NowMilliseconds() - 3 * HOUR,
        seen_ms=NowMilliseconds() - age_ms,
        report=Report(**report).as_text(),
    )


def session(number: int = 1, user: str = "", **columns: Any) -> Session:
    given: dict[str, Any] = {
        "digest": digest(bytes(str(number), "ascii")),
        "principal_key": Principal(kind="user", user_id=user).key,
        "server": "default",
        "revision": "2025-11-25",
        "client_info": '{"name": "Claude Code", "version": "2.1"}',
        "created_ms": NowMilliseconds() - 2 * HOUR,
        "seen_ms": NowMilliseconds() - 5 * MINUTE,
        **columns,
    }
    return Session.objects.create(**given)


def call(of: Session, number: int = 1, **columns: Any) -> Stream:
    given: dict[str, Any] = {
        "public_id": f"stream{number}",
        "session": of,
        "requests": str(number),
        "tool": "book_table",
        "head_seq": 4,
        "state": Stream.State.OPEN,
        "owner": "w",
        "last_batch": "",
        "created_ms": NowMilliseconds() - 90_000,
        **columns,
    }
    return Stream.objects.create(**given)


def shown(client: Client, part: str = "") -> str:
    return words_of(client, page("session", "live"), {"part": part} if part else {})


def pressed(client: Client, what: str, key: int) -> str:
    """Press a button; return what the page says then."""
    url = reverse(f"admin:mcp_app_session_{what}", args=[key])
    answer = client.post(url, follow=True)
    assert answer.redirect_chain == [(page("session", "live"), 302)]
    (message,) = answer.context["messages"]
    return str(message)


# -- what is shown ------------------------------------------------------------------


def test_where_nothing_is_the_page_says_so(admin_client: Client) -> None:
    text = shown(admin_client)
    for said in (
        "Ready</span> 0 processes · 0 calls · 0 sessions",
        "None serves now. One starts with the next request.",
        "No client has asked in the last 15 minutes.",
        "Calls that can be cancelled (0)",
    ):
        assert said in text


def test_the_strip_counts_what_there_is(admin_client: Client) -> None:
    worker(calls={"support": 4}, code="c")
    call(session())
    write({"session": ""})
    text = shown(admin_client, "state")
    numbers = "1 process · 5 calls · 1 session · 1 client without a session"
    assert f"Serving</span> {numbers}" in text
    assert "and 4 short ones, which are only counted" in shown(admin_client, "calls")
    Worker.objects.all().delete()
    assert "No process</span>" in shown(admin_client, "state")
    Stop.objects.make(Scope.EVERYTHING, by=By("lee"))
    assert "Stopped</span>" in shown(admin_client, "state")


def test_processes_say_what_they_run(admin_client: Client) -> None:
    worker(
        streams={"default": 2, "support": 1},
        calls={"support": 4},
        tasks=1,
        places=2,
        lost=5,
        dropped=12,
        secrets=3,
        code="ab" * 32,
    )
    worker("well", code="ab" * 32)
    worker("old", age_ms=20_000, streams={"past": 7}, calls={"gone": 9})
    call(session(), owner="w")
    call(session(2), 2, owner="old")
    text = shown(admin_client, "workers")
    for said in (
        "Processes (2)",
        '<th scope="row">host-w, 7</th>',
        'data-label="Runs for">3 h<',
        'data-label="Streams" class="mcp-number">3<',
        'data-label="Calls now" class="mcp-number">5<',
        'data-label="Tasks" class="mcp-number">1 of 2<',
        "5 threads still run although their calls have ended",
        "12 messages were dropped",
        "3 secrets were taken out of log messages",
        "Silent",
        "last heard of 20 s ago",
        # What a silent one had, nobody has any more.
        f'data-label="Streams" class="mcp-number">{NONE}<',
        'data-label="Remarks"></td>',
    ):
        assert said in text
    assert "its code is" not in text


@pytest.mark.parametrize(
    ("codes", "said"), [(("a", "a"), False), (("a", "b"), True), (("a", ""), False)]
)
def test_other_code_is_told(
    admin_client: Client, codes: tuple[str, str], said: bool
) -> None:
    for name, code in zip("xy", codes, strict=True):
        worker(name, code=code)
    # One that is silent runs nothing.
    worker("gone", age_ms=HOUR, code="c")
    assert ("its code is b" in shown(admin_client, "workers")) is said


def test_a_process_of_an_older_release_says_nothing(admin_client: Client) -> None:
    row = worker()
    Worker.objects.filter(pk=row.pk).update(report="")
    text = shown(admin_client, "workers")
    assert "Serving" in text
    assert f'data-label="Streams" class="mcp-number">{NONE}<' in text


def test_clients_with_a_session_and_without(admin_client: Client, staff: Staff) -> None:
    maria = User.objects.create_user("maria")
    first = session(1, str(maria.pk))
    session(2, "", seen_ms=NowMilliseconds())
    session(3, "", seen_ms=NowMilliseconds() - HOUR, client_info='{"name": "Past"}')
    worker(sessions=(first.pk,), code="c")
    write(
        *({"session": first.digest[:16]} for _ in range(3)),
        *({"session": "", "client_name": "Cursor", "ago_ms": 90_000} for _ in range(2)),
    )
    text = shown(admin_client, "clients")
    places = [text.index(each) for each in ("nobody", "Cursor 2.1", "5 min ago")]
    assert places == sorted(places)
    for said in (
        "Clients of the last 15 minutes (3)",
        "Claude Code 2.1",
        'data-label="Connected by">no session<',
        'data-label="Calls" class="mcp-number">3<',
        'data-label="Calls" class="mcp-number">2<',
        first.digest[:8],
    ):
        assert said in text
    assert text.count(", listens") == 1
    assert first.digest[:9] not in text
    assert "Past" not in text
    # Who may not view calls reads nothing of them.
    text = shown(staff("view_session"), "clients")
    assert "Clients of the last 15 minutes (2)" in text
    assert "Cursor" not in text
    assert 'data-label="Calls"' not in text


def test_calls(admin_client: Client) -> None:
    worker()
    worker("dead", age_ms=HOUR)
    maria = session(1, str(User.objects.create_user("maria").pk))
    progress = {"progress": 3, "total": 12, "message": "months"}
    message = {"method": "notifications/progress", "params": progress}
    streams = call(maria, 1), call(maria, 2, tool="", requests='"a"')
    for stream, payload in zip(streams, (json.dumps(message), "[]"), strict=True):
        Event.objects.create(stream=stream, seq=4, payload=payload, size=99)
    call(maria, 3, tool="", requests="[1, 2, 3]", owner="dead")
    call(maria, 4, owner="forgotten")
    call(maria, 5, tool="over", state=Stream.State.COMPLETED, ended_ms=1)
    text = shown(admin_client, "calls")
    for said in (
        "Calls that can be cancelled (4)",
        "book_table",
        "maria",
        'data-label="Runs for">1 min<',
        'data-label="Progress">3 of 12 months<',
        f'data-label="Progress">{NONE}<',
        "a request that does not call a tool",
        "a batch of 3",
    ):
        assert said in text
    assert "over<" not in text
    assert text.count("The process of this call is gone.") == 2
    assert text.count(">Cancel<") == 2


def test_hostile_texts_are_no_markup(admin_client: Client) -> None:
    hostile = f"{MARKUP}\u202e"
    row = worker("bad")
    Worker.objects.filter(pk=row.pk).update(host=hostile)
    name = f'{{"name": "{hostile}"}}'
    user = User.objects.create(username=hostile)
    call(session(1, str(user.pk), client_info=name, server=hostile), tool=hostile)
    live_page = page("session", "live")
    parts = [
        f"{live_page}?part={part}" for part in live_parts.LIVE_PARTS if part != "state"
    ]
    for url in (live_page, *parts):
        text = text_of(admin_client, url)
        assert MARKUP not in text
        assert "\u202e" not in text
        assert "⟦U+202E⟧" in text
    assert "⟦U+202E⟧" in text_of(admin_client, page("session"))


def test_few_queries_for_many_rows(
    staff: Staff, django_assert_max_num_queries: Queries
) -> None:
    client = staff("view_session", "delete_session", "view_call")
    for number in range(live_parts.SHOWN + 3):
        user = User.objects.create(username=f"user_{number}")
        worker(f"w{number}", streams={"default": 3}, code="ab" * 32)
        call(session(number, str(user.pk)), number, owner=f"w{number}")
    with django_assert_max_num_queries(15):
        text = shown(client)
    assert text.count("and 3 more") == 3
    assert "All sessions" in text
    for number in range(60, 63):
        worker(f"w{number}")
    for part in live_parts.LIVE_PARTS:
        with django_assert_max_num_queries(9):
            text = shown(client, part)
        assert len(text) <= 20_000
    assert "and 6 more" in text


def test_a_part_that_there_is_not(admin_client: Client) -> None:
    answer = admin_client.get(page("session", "live"), {"part": "nothing"})
    assert answer.status_code == 404


def test_the_page_is_linked(admin_client: Client, staff: Staff) -> None:
    link = f'href="{page("session", "live")}"'
    index = reverse("admin:app_list", args=["mcp_app"])
    for url in (index, page("session")):
        assert link in text_of(admin_client, url)
    assert link not in text_of(staff("view_tool"), index)


# -- rights -------------------------------------------------------------------------


@pytest.mark.parametrize("rights", [("view_tool", "delete_session"), ("view_session",)])
def test_who_may_end_nothing(staff: Staff, rights: tuple[str, ...]) -> None:
    worker()
    stream = call(session())
    client = staff(*rights)
    for what, key in (("close", stream.session_id), ("cancel", stream.pk)):
        assert client.post(page("session", what, key)).status_code == 403
    assert Session.objects.exists()
    assert not Change.objects.filter(kind="stopped").exists()
    if "view_session" not in rights:
        assert client.get(page("session", "live")).status_code == 403
        return
    text = shown(client)
    assert "This needs the right “Can delete session”." in text
    for button in (">Cancel<", ">Close<"):
        assert button not in text


@pytest.mark.parametrize("what", ["close", "cancel"])
def test_nothing_is_ended_by_a_link(admin_client: Client, what: str) -> None:
    stream = call(session())
    key = stream.session_id if what == "close" else stream.pk
    assert admin_client.get(page("session", what, key)).status_code == 405
    guarded = Client(enforce_csrf_checks=True)
    guarded.force_login(User.objects.get(username="admin"))
    assert guarded.post(page("session", what, key)).status_code == 403
    assert Session.objects.exists()


# -- ending -------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_session_is_closed(admin_client: Client, slept: list[float]) -> None:
    worker()
    row = session()
    call(row)
    said = pressed(admin_client, "close", row.pk)
    assert said == "Closed. The client opens a new session when it next calls."
    assert not Session.objects.exists()
    assert not Stream.objects.exists()
    assert Change.objects.filter(kind="session", ref=str(row.pk)).exists()
    # Every process knows of it when the page answers.
    assert slept == [pytest.approx(0.25)]
    entry = LogEntry.objects.get()
    logged = (entry.action_flag, entry.object_id, entry.change_message)
    assert logged == (DELETION, str(row.pk), "Closed.")


def test_a_session_that_is_gone(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = session()
    first: Any = QuerySet.first

    def first_and_gone(rows: QuerySet[Any]) -> Any:
        found = first(rows)
        if rows.model is Session:
            Session.objects.filter(pk=row.pk).delete()
        return found

    monkeypatch.setattr(QuerySet, "first", first_and_gone)
    for _ in range(2):
        said = pressed(admin_client, "close", row.pk)
        assert said == "This session is closed already."
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(
    ("requests", "ids"), [("7", [7]), ('"7"', ["7"]), ("[1,2]", [1, 2])]
)
def test_a_call_is_cancelled(
    admin_client: Client, requests: str, ids: list[str | int]
) -> None:
    worker()
    stream = call(session(), requests=requests)
    said = pressed(admin_client, "cancel", stream.pk)
    assert said.startswith("The process that runs book_table was told to cancel it.")
    told = set(Change.objects.filter(kind="stopped").values_list("ref", flat=True))
    assert told == {f"{stream.session_id}:{request_key(each)}" for each in ids}
    entry = LogEntry.objects.get()
    assert (entry.action_flag, entry.object_id) == (CHANGE, str(stream.session_id))
    assert entry.change_message == "Cancelled a call: book_table."
    history = text_of(admin_client, page("session", "history", stream.session_id))
    assert "Cancelled a call: book_table." in history


@pytest.mark.django_db(transaction=True)
def test_the_page_waits_for_the_end_of_a_call(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker()
    stream = call(session())

    def end(seconds: float) -> None:
        # The first wait is until every process has heard of it.
        if seconds == live.LOOK_S:
            Stream.objects.update(state=Stream.State.COMPLETED, ended_ms=1)

    monkeypatch.setattr(time, "sleep", end)
    said = pressed(admin_client, "cancel", stream.pk)
    assert said == "Cancelled: book_table. Its client has been told."


@pytest.mark.django_db(transaction=True)
def test_the_page_does_not_wait_for_ever(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "PATIENCE_S", 0.0)
    worker()
    assert "Look again" in pressed(admin_client, "cancel", call(session()).pk)


def test_a_call_that_is_over(admin_client: Client) -> None:
    stream = call(session(), state=Stream.State.COMPLETED, ended_ms=1)
    for key in (stream.pk, stream.pk + 1):
        assert pressed(admin_client, "cancel", key) == "This call is over already."
    assert not LogEntry.objects.exists()


def test_a_call_that_nobody_runs(admin_client: Client) -> None:
    worker(age_ms=HOUR)
    said = pressed(admin_client, "cancel", call(session()).pk)
    assert said.startswith("Nobody runs this call any more")
    assert not LogEntry.objects.exists()
    assert not Change.objects.filter(kind="stopped").exists()


# -- words --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age_ms", "ago"),
    [
        # The database's clock may have jumped.
        (-5_000, "0 s ago"),
        (999, "0 s ago"),
        (MINUTE - 1, "59 s ago"),
        (MINUTE, "1 min ago"),
        (HOUR - 1, "59 min ago"),
        (HOUR, "1 h ago"),
        (2 * DAY - 1, "47 h ago"),
        (2 * DAY, "2 days ago"),
        (9 * DAY, "9 days ago"),
    ],
)
def test_how_long_ago(age_ms: int, ago: str) -> None:
    assert live_parts._age_of_request(age_ms)["ago"] == ago
