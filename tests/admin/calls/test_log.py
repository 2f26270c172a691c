"""The list of calls: what it shows, finds, counts and costs, and to whom."""

from __future__ import annotations

import csv
import re
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from mcp_app.admin.calls import export, filters, log
from mcp_app.admin.calls.filters import CHOICES, milliseconds, stored_time
from mcp_app.models import Call, CallStatistic, Tool, call_rows
from mcp_app.publishing.rights import RIGHTS
from tests.admin.calls.rows import DAY, HOUR, MINUTE, crash, write
from tests.admin.pages import Staff, grant, page, page_of, words_of
from tests.published import published

pytestmark = pytest.mark.django_db


MARKUP = "<img src=x onerror=alert(1)>"
HOSTILE = f"{MARKUP}\u202e"
LIST = page("call")


def shown(client: Client, **asked: Any) -> str:
    return words_of(client, LIST, asked)


def names_in(text: str) -> list[str]:
    """Return the names of the calls on a page."""
    return re.findall(r'<td title="(.*?)"><a', text)


def listed(client: Client, **asked: Any) -> list[str]:
    return names_in(shown(client, **asked))


# -- what is shown ------------------------------------------------------------------


def test_where_nothing_is_the_page_says_so(admin_client: Client) -> None:
    text = shown(admin_client)
    assert "No calls in this time." in text
    assert "Last 7 days" in text
    assert "Kept for 30 days, or until there are too many (settings)" in text


def test_a_call_is_a_line(admin_client: Client) -> None:
    (call,) = write(crash(took_us=312_000, name="n" * 99))
    text = shown(admin_client)
    for said in (
        f'href="{page("call", "change", call.pk)}"',
        '<span class="mcp-out bad">Crashed</span>',
        f'<td title="{"n" * 99}"><a href=',
        ">maria</a>",
        ">Claude Code</td>",
        "312 ms",
    ):
        assert said in text


@pytest.mark.databases
def test_the_newest_come_first_and_pages_follow_one_another(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "PER_PAGE", 3)
    # Two began in the same millisecond, where pages meet.
    times = [1, 2, 3, 3, 5, 6, 7]
    calls = write(
        *({"ago_ms": ago * 1_000, "name": f"n{n}"} for n, ago in enumerate(times))
    )
    names = [call.name for call in calls]
    first = shown(admin_client)
    first = shown(admin_client)
    assert names_in(first) == names[:3]
    assert ">Newer<" not in first

    def follow(label: str, text: str) -> tuple[list[str], str]:
        found = re.search(rf'href="\?([^"]+)">{label}<', text)
        assert found is not None
        text = words_of(admin_client, f"{LIST}?{found[1]}")
        return names_in(text), text

    second, second_text = follow("Older", first)
    assert second == names[3:6]
    assert follow("Newer", second_text)[0] == names[:3]
    third, text = follow("Older", second_text)
    assert third == names[6:]
    assert ">Older<" not in text
    assert follow("Newer", text)[0] == names[3:6]


@pytest.mark.databases
@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({}, ["new", "slow", "failed", "prompt", "other", "nobody"]),
        ({"outcome": "any_failure"}, ["failed"]),
        ({"outcome": "any_refusal"}, []),
        ({"outcome": "crashed"}, ["failed"]),
        ({"outcome": "answered", "name": "new"}, ["new"]),
        ({"kind": "prompt"}, ["prompt"]),
        ({"server": "support"}, ["other"]),
        ({"slower": "1000"}, ["slow"]),
        ({"slower": "5000"}, []),
        ({"name": "slow"}, ["slow"]),
        ({"name": "slo"}, []),
        ({"user": "lena"}, ["nobody"]),
        ({"user": "maria", "outcome": "any_failure"}, ["failed"]),
        ({"q": "lena"}, ["nobody"]),
        ({"q": "EW"}, ["new"]),
        ({"q": "o", "outcome": "answered"}, ["slow", "prompt", "other", "nobody"]),
        ({"when": "hour"}, ["new"]),
        ({"when": "week", "kind": "tool", "server": "default", "q": "old"}, ["old"]),
    ],
)
def test_filters(admin_client: Client, asked: dict[str, str], names: list[str]) -> None:
    write(
        {"name": "new"},
        {"name": "slow", "took_us": 1_000_001, "ago_ms": 2 * HOUR},
        crash(name="failed", ago_ms=3 * HOUR),
        {"name": "prompt", "kind": "prompt", "ago_ms": 4 * HOUR},
        {"name": "other", "server": "support", "ago_ms": 5 * HOUR},
        {"name": "nobody", "user_name": "lena", "ago_ms": 6 * HOUR},
        {"name": "old", "ago_ms": 3 * DAY},
    )
    assert listed(admin_client, **asked) == names


def test_from_to(admin_client: Client) -> None:
    write({"name": "new"}, {"name": "old", "ago_ms": 3 * DAY})
    old = Call.objects.get(name="old")
    asked = {"when": "between", "from": f"{stored_time(old.time_ms):%Y-%m-%dT%H:%M}"}
    assert listed(admin_client, **asked) == ["new", "old"]
    asked["to"] = f"{stored_time(old.time_ms + MINUTE):%Y-%m-%dT%H:%M}"
    assert listed(admin_client, **asked) == ["old"]


FROM = {"when": "between", "from": "2026-02-02T00:00"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"outcome": "wrong"}, "“wrong” is not a choice for “Outcome”, and was ignor"),
        ({"when": HOSTILE}, "is not a choice for “When”, and was ignored."),
        ({"when": "between", "from": "soon"}, "“soon” is not a time"),
        ({"when": "between", "from": "1999-12-31T23:59"}, "is not a time"),
        ({"when": "between", "from": "3000-01-01T00:00"}, "is not a time"),
        ({"when": "between", "to": "0001-01-01T00:00"}, "is not a time"),
        ({"when": "between", "to": "2026-13-01T00:00"}, "is not a time"),
        ({**FROM, "to": "2026-02-02T00:00"}, "The end was ignored"),
        ({**FROM, "to": "2026-01-01T00:00"}, "The end was ignored"),
        ({"older": "x"}, ""),
        ({"older": "9" * 18 + "." + "9" * 18}, ""),
        ({"q": "\0", "user": "\0", "name": "a" * 999}, ""),
    ],
)
def test_what_cannot_be_asked_is_named(
    admin_client: Client, asked: dict[str, str], said: str
) -> None:
    write({})
    assert said in shown(admin_client, **asked)
    assert MARKUP not in admin_client.get(LIST, asked).content.decode()


def test_an_error_number_leads_to_its_call(admin_client: Client) -> None:
    (call,) = write(crash(ago_ms=5 * DAY))
    for number in ("7f3a29cd", " 7F3A-29CD "):
        answer = admin_client.get(LIST, {"q": number})
        assert answer.status_code == 302
        assert answer["Location"] == page("call", "change", call.pk)
    assert "No calls in this time." in shown(admin_client, q="00000000")


def test_who_is_named_like_a_tool_has_each_call_once(admin_client: Client) -> None:
    both = {"name": "kim_tool", "user_name": "kim_tool"}
    write(both, both, {"name": "kim_tool"}, {"user_name": "kim_tool"}, {})
    answer = admin_client.get(LIST, {"q": "kim_tool"})
    pks = re.findall(r"/admin/mcp_app/call/(\d+)/", answer.content.decode())
    assert len(set(pks)) == len(pks) == 4
    assert "4 calls" in shown(admin_client, q="kim_tool")


def test_chips_can_be_removed(admin_client: Client) -> None:
    write({"name": "a b&c"})
    answer = admin_client.get(LIST, {"name": "a b&c", "outcome": "answered"})
    (chip,) = answer.context["chips"]
    assert (chip["label"], chip["url"]) == ("Name: a b&c", "?outcome=answered")
    assert listed(admin_client, name="a b&c") == ["a b&c"]


@pytest.mark.databases
def test_calls_are_found_by_a_title_that_the_person_may_view(staff: Staff) -> None:
    published(Tool(name="order_refund", title="Repay an Order", description="Old."))
    write({"name": "order_refund"}, {"name": "pay"})
    client = staff("view_call")
    assert listed(client, q="repay AN") == []
    grant("view_tool")
    assert listed(client, q="repay AN") == ["order_refund"]


def test_a_tool_has_a_tab_with_its_calls_of_yesterday(staff: Staff) -> None:
    row = published(Tool(name="order_refund", description="Old."))
    Tool.objects.update(name="draft_name")
    late = milliseconds(filters._midnight(0)) - HOUR
    called = {"name": "order_refund", "time_ms": late}
    others = ({**called, "user_name": "x", "time_ms": late + n} for n in (-DAY, DAY))
    write(called, *others, {**called, "name": "pay"}, {**called, "kind": "prompt"})
    client, tab = staff("view_tool"), page("tool", "calls", row.pk)
    assert tab not in words_of(client, page_of(row))
    assert client.get(tab).status_code == 403
    grant("view_call")
    assert f'<a href="{tab}">Calls</a>' in words_of(client, page_of(row))
    text = words_of(client, tab, {"when": "yesterday", "name": "pay"})
    assert re.findall(r'class="mcp-hide" title="(\w+)"', text) == ["maria"]


# -- the numbers ----------------------------------------------------------------------


def test_the_figures_of_all_and_of_some(admin_client: Client) -> None:
    write(
        *({"took_us": 900, "ago_ms": HOUR} for _ in range(94)),
        *({"outcome": "arguments", "took_us": 900} for _ in range(2)),
        *({"took_us": 900, "name": "quick", "ago_ms": HOUR} for _ in range(2)),
        crash(took_us=3_000_000),
        crash(took_us=60_000_000, name="slow"),
        crash(took_us=60_000_000, name="slow", ago_ms=3 * HOUR),
        {"ago_ms": 3 * DAY},
    )

    def cards(**asked: str) -> list[str]:
        answer = admin_client.get(LIST, asked)
        return [" ".join(each[:2]) for each in answer.context["cards"]]

    of_all = ["101 calls", "3 failed", "2 refused"]
    took = ["1 ms half of them took at most", "1 ms 95 of 100 took at most"]
    assert cards() == [*of_all, *took]
    slow = ["60.0 s half of them took at most", "60.0 s 95 of 100 took at most"]
    assert cards(outcome="any_failure") == [*of_all, *slow]
    assert cards(name="quick")[:3] == ["2 calls", "0 failed", "0 refused"]
    # A person is in no counter.
    assert admin_client.get(LIST, {"user": "maria"}).context["cards"] is None
    counts = {"": 101, "any_failure": 3, "any_refusal": 2, "arguments": 2}
    for outcome, count in counts.items():
        # Counters do not have all that is listed: they say no number there.
        text = shown(admin_client, outcome=outcome)
        assert "<caption>Calls, the newest first</caption>" in text
        text = shown(admin_client, outcome=outcome, user="maria")
        assert f"<caption>{count} calls, the newest first</caption>" in text


def test_the_chart_says_the_same_as_its_table(admin_client: Client) -> None:
    write({}, crash(ago_ms=3 * HOUR), {"ago_ms": 23 * HOUR, "outcome": "unknown"})
    for when, most in (("hour", 13), ("day", 25), ("week", 32), ("month", 32)):
        figures = admin_client.get(LIST, {"when": when}).context["figures"]
        bars = figures.chart["bars"]
        numbers = [(bar.answered, bar.refused, bar.failed) for bar in bars]
        ends = [sum(each) for each in zip(*numbers, strict=True)]
        assert ends == ([1, 0, 0] if when == "hour" else [1, 1, 1])
        assert len(bars) <= most + 1


def test_calls_without_a_row_are_counted(admin_client: Client) -> None:
    write({})
    CallStatistic.objects.update(calls=5, dropped=4, to_20=5)
    text = shown(admin_client)
    assert "4 of them were only counted" in text
    assert "<strong>5</strong> calls" in text


# -- rights, and what clients wrote ---------------------------------------------


def test_without_the_right(staff: Staff) -> None:
    (call,) = write(crash())
    client = staff("view_tool", "view_session")
    pages = [page("call", each) for each in ("changelist", "refused", "export")]
    for url in (*pages, page("call", "change", call.pk)):
        assert client.get(url).status_code == 403


def test_nobody_changes_calls(admin_client: Client) -> None:
    (call,) = write({})
    for what in ("add/", f"{call.pk}/delete/", f"{call.pk}/change/"):
        assert admin_client.get(f"{LIST}{what}").status_code == 404
    admin_client.post(LIST, {"action": "delete_selected", "_selected_action": call.pk})
    assert Call.objects.filter(pk=call.pk).exists()


def test_hostile_texts_are_no_markup(admin_client: Client) -> None:
    columns = ("name", "server", "user_name", "client_name", "client_version", "error")
    more = ("principal", "principal_client", "user_id")
    hostile = dict.fromkeys((*columns, *more), HOSTILE)
    short = {name: f"<b>{name[:4]}\u202e" for name in ("outcome", "kind", "failure")}
    (call,) = write(
        {**hostile, **short, "revision": "<b>\u202e", "session": "<b>\u202e"}
    )
    for url in (
        f"{LIST}?q={MARKUP}%E2%80%AE&user=%3Cb%3E%E2%80%AE",
        LIST,
        f"{LIST}?server=%3Cb%3E%E2%80%AE",
        page("call", "change", call.pk),
    ):
        text = admin_client.get(url).content.decode()
        assert MARKUP not in text
        assert "<b>" not in text
        # What a field sends stays as it is.
        read = re.sub(r'value="[^"]*"', "", text)
        assert "\u202e" not in read
        assert "⟦U+202E⟧" in text


def test_the_right_has_the_name_that_the_pages_say() -> None:
    rights = [(name, str(RIGHTS[name])) for name in ("view_call", "view_values")]
    assert Call._meta.permissions == rights


def test_every_list_has_a_label(admin_client: Client) -> None:
    text = shown(admin_client)
    for name, (label, _choices) in CHOICES.items():
        assert f'<select name="{name}" aria-label="{label}">' in text


# -- export ----------------------------------------------------------------------------


EXPORT = page("call", "export")


def exported(client: Client, **asked: Any) -> list[dict[str, str]]:
    answer: Any = client.get(EXPORT, asked)
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"].startswith("attachment;")
    return rows_of(b"".join(answer.streaming_content))


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(content.decode().splitlines()))


def test_what_is_asked_for(admin_client: Client) -> None:
    write({"name": "new"}, crash(name="bad", ago_ms=2 * HOUR), {"ago_ms": 48 * HOUR})
    assert [row["name"] for row in exported(admin_client)] == ["new", "bad"]
    (row,) = exported(admin_client, outcome="any_failure")
    assert row["outcome"] == "crashed"
    assert row["user"] == "maria"
    assert row["took_ms"] == "12.0"
    assert row["error_number"] == "7f3a29cd"
    assert row["told"] == "book_table failed. Its error number in the log is 7f3a29cd."


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_is_a_formula(admin_client: Client, start: str) -> None:
    text = f'{start}HYPERLINK("http://x","y")'
    write(dict.fromkeys(("name", "user_name", "client_name", "error"), text))
    (row,) = exported(admin_client)
    for name in ("name", "user", "client", "told"):
        assert row[name].startswith(f"'{start}"[:1])
        assert row[name].endswith('HYPERLINK("http://x","y")')


SIGNS = ("=", "+", "-", "@", *"\uff1d\uff0b\uff0d\uff20\u2212")


def test_a_formula_behind_hidden_characters() -> None:
    assert export.csv_cell_text("\u202e=1+1") == "⟦U+202E⟧=1+1"
    assert export.csv_cell_text(-5) == "'-5"
    assert export.csv_cell_text(5) == "5"


@pytest.mark.parametrize("blank", ["", " ", "\u00a0", "\n", "\r\n ", "\u3000", "\x0b"])
def test_a_formula_behind_blanks_and_in_any_width(blank: str) -> None:
    cells = [export.csv_cell_text(f"{blank}{sign}1+1") for sign in SIGNS]
    assert [each for each in cells if not each.startswith("'")] == []


@pytest.mark.parametrize("text", ["", " ", " a=1", "a", "\n"])
def test_what_is_no_formula_is_left(text: str) -> None:
    assert not export.csv_cell_text(text).startswith("'")


@pytest.mark.parametrize("asked", [{}, {"slower": "100"}, {"outcome": "any_failure"}])
def test_page_after_page_up_to_a_bound(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, asked: dict[str, str]
) -> None:
    # Many begin in the same millisecond, where parts meet.
    write(*(crash(name=f"n{n}", ago_ms=n // 3, took_us=200_000) for n in range(20)))
    monkeypatch.setattr(export, "PART", 4)
    monkeypatch.setattr(call_rows, "LOOKED", 7)
    monkeypatch.setattr("mcp_app.models.calls.LOOKED", 7)
    names = [row["name"] for row in exported(admin_client, **asked)]
    assert sorted(names) == sorted(f"n{n}" for n in range(20))
    monkeypatch.setattr(export, "MAX_EXPORTED_CALLS", 10)
    assert len(exported(admin_client, **asked)) == 10


def test_secrets_and_arguments_are_not_in_it(admin_client: Client) -> None:
    (call,) = write({"principal_client": "f" * 32})
    text = str(exported(admin_client))
    for kept_back in (call.session, call.principal_client, call.arguments_digest):
        assert kept_back not in text


@pytest.mark.django_db(transaction=True)
async def test_under_asgi_it_is_sent_in_parts(
    async_client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "PART", 4)
    await sync_to_async(write)(*({"name": f"n{n}"} for n in range(10)))
    root = await sync_to_async(User.objects.create_superuser)("root")
    await async_client.aforce_login(root)
    answer: Any = await async_client.get(EXPORT)
    assert answer.is_async
    parts = [part async for part in answer.streaming_content]
    assert len(parts) == 3
    names = [row["name"] for row in rows_of(b"".join(parts))]
    assert names == [f"n{n}" for n in range(10)]
