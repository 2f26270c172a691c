"""Answers as tables and bars."""

from __future__ import annotations

import re
from typing import Any

from django.template.loader import render_to_string

from mcp_app.admin.page.result import NOTHING, ResultTable, bar_plot, result_table

GROUPS: list[dict[str, Any]] = [
    {"customer": "Meyer", "hires": 21, "turnover": "48210.00"},
    {"customer": {"text": "Rohde", "pk": 3}, "hires": 7, "turnover": "4821.00"},
    {"customer": None, "hires": 1, "turnover": None},
]


def table_of(value: object) -> ResultTable:
    table = result_table(value)
    assert table is not None
    return table


def texts(table: ResultTable) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def html(value: object) -> str:
    context = {"table": result_table(value), "title": "Rows"}
    return render_to_string("admin/mcp_app/includes/result.html", context)


def test_the_first_list_of_objects_is_a_table_with_bars() -> None:
    for value in ({"groups": GROUPS, "n": 3}, {"data": {"items": GROUPS}, "n": 3}):
        table = table_of(value)
        assert texts(table) == [
            ["Meyer", "21", "48,210.00"],
            ["Rohde", "7", "4,821.00"],
            [NOTHING, "1", NOTHING],
        ]
        assert [each.is_number for each in table.columns] == [False, True, True]
        assert [row[2].bar for row in table.rows] == ["100.0", "10.0", "0.0"]
        assert [(each.column.name, each.text) for each in table.facts] == [("n", "3")]
        assert html(value).count("<rect") == len(GROUPS)


def test_dates_are_a_chart_with_a_place_for_each_month_between() -> None:
    months = [("2026-04-01", 30), ("2026-01-01", 7), ("2026-02-01", 41)]
    groups = [{"begins_month": month, "hires": hires} for month, hires in months]
    plot = table_of({"groups": groups}).plot
    assert plot is not None
    assert plot.labels == ["Jan", "Feb", "Mar", "Apr"]
    due = [{"due": month, "hires": hires} for month, hires in months]
    assert texts(table_of(due))[0][0] == "Apr 2026"
    assert plot.values == ["42", "21", "0"]
    # March has none.
    assert re.findall(r"M(\S+)", plot.bars[0][1]) == ["19.2", "179.2", "499.2"]
    plot = table_of(
        [{"day": f"2026-01-{day:02}", "n": day} for day in range(1, 32)]
    ).plot
    assert plot is not None
    assert plot.labels[:3] == ["1 Jan", "6 Jan", "11 Jan"]


def test_nothing_is_compared_that_nobody_compares() -> None:
    for rows in (
        [{"name": "a", "pk": 1}, {"name": "b", "pk": 2}],
        [{"name": "a", "n": 1}, {"name": "a", "n": 2}],
        [{"name": "a", "n": 1}, {"name": "b", "n": -2}],
        [{"name": "a", "n": 1}],
        [{"name": "a", "state": "x", "n": 1}, {"name": "b", "state": "x", "n": 2}],
        [{"ok": True, "n": 1}, {"ok": False, "n": 2}],
        [{"n": 1}, {"n": 2}],
    ):
        assert not re.search("<rect|<svg", html({"rows": rows})), rows


def test_what_is_long_many_or_nested_is_short() -> None:
    row = {
        "text": "x" * 500,
        "list": {"rows": [{"n": 1, "state": "out"}, {"n": 2, "state": "back"}]},
        "tags": ["red", "blue"],
        "deep": {"a": {"b": [[1]]}},
        "hidden": "\u202e<b>",
        "yes": True,
    }
    table = table_of([{**row, **{f"f{at}": at for at in range(200)}}] * 5_000)
    assert (len(table.columns), table.more_columns) == (12, 194)
    assert (len(table.rows), len(table.more_rows), table.count) == (10, 190, 5_000)
    long, *short = texts(table)[0][:6]
    assert (len(long), long[-1]) == (120, "…")
    assert short == ["2 rows:", "red, blue", "a: b: 1", "⟦U+202E⟧<b>", "yes"]
    assert table.rows[0][1].below == "n: 1; state: out\nn: 2; state: back"
    assert "&lt;b&gt;" in html([row])


def test_one_object_is_its_members_and_plain_values_are_no_table() -> None:
    table = table_of({"code": "M1", "price": "5.50", "gone": None, "tags": []})
    assert [each.text for each in table.facts] == ["M1", "5.50", NOTHING]
    assert not table.has_rows
    for value in ("text", 5, None, [1, 2], {}, {"result": "text"}):
        assert result_table(value) is None
    assert "No rows." in html([])
    assert "No rows." in html({"rows": [], "total": 0})


def test_axes_end_in_short_numbers() -> None:
    for most, values in (
        (41_391, ["42k", "21k", "0"]),
        (7, ["8", "4", "0"]),
        (0.37, ["0.38", "0.19", "0"]),
        (0, ["2", "1", "0"]),
        (5e-324, ["2", "1", "0"]),
        (1_250_000, ["1.4M", "700k", "0"]),
        (9_999, ["10k", "5000", "0"]),
    ):
        assert bar_plot([[most]], ["a"], "").values == values, most


def test_times_and_lists_of_rows_are_as_people_read_them() -> None:
    visit = {"at": "2026-09-26T12:00:00+00:00", "paid": False, "vet": {"text": "Lind"}}
    row = {"begins_month": "2026-10-01", "born": "2026-10-01", "visits": [visit] * 5}
    line = "at: 26 Sep 2026, 12:00; paid: no; vet: Lind"
    [cells] = texts(table_of([row]))
    assert cells == ["Oct 2026", "2026-10-01", "5 rows:"]
    assert table_of([row]).rows[0][2].below == f"{line}\n{line}"
    assert texts(table_of([{"n": 1, "begins_year": "2026-01-01"}])) == [["1", "2026"]]
    assert texts(table_of([{"n": 1, "at": "2026-02-30T99:00"}])) == [
        ["1", "2026-02-30T99:00"]
    ]
