"""The tables of what clients can do."""

from __future__ import annotations

from benchmarks.clients.catalog import CALLS, FACETS, Client
from benchmarks.clients.table import ABILITIES, markdown, pages, rows, several
from benchmarks.clients.verdicts import Verdict

CLIENT = Client(name="a", title="A 1", packages=("a==1",), driver="drive_a.py")
RIGHT = {**dict.fromkeys(FACETS, "+"), "revision": "2025-11-25"}


def test_a_line_for_each_client() -> None:
    written = rows([Verdict(CLIENT, RIGHT), Verdict(CLIENT)], ABILITIES)
    head, line, full, empty = written.splitlines()
    assert head.startswith("| client | HTTP | HTTP+SSE | stdio | newest |")
    assert line == "|" + "---|" * (1 + len(ABILITIES))
    assert full == "| A 1 | + | + | + | 2025-11-25 | + | + | + | + | + |"
    assert empty == "| A 1 | . | . | . | . | . | . | . | . | . |"


def test_several_facets_share_a_cell() -> None:
    column = several(CALLS)
    calls = dict.fromkeys(CALLS, "+")
    assert column(calls) == "+"
    assert column({}) == "."
    assert column({**calls, "audio": "no", "link": "no"}) == "no audio, links"
    assert column({**calls, "audio": "no", "errors": "-"}) == "-"
    del calls["structured"]
    assert column(calls) == "no structured results"


def test_whoever_reads_one_page_is_told_of() -> None:
    assert pages({"pages": "no"}) == "first only"
    assert pages({"pages": "+"}) == "+"
    assert pages({}) == "."


def test_what_could_not_be_installed_is_named_below() -> None:
    missing = Verdict(CLIENT, not_installed="No matching distribution")
    written = markdown([Verdict(CLIENT, {**RIGHT, "wrong": "“401”"}), missing])
    abilities, sentences, told = written.split("\n\n")
    assert abilities.count("A 1") == sentences.count("A 1") == 1
    assert sentences.endswith("| A 1 | + | “401” | + | + |")
    assert told == "A 1 could not be installed: No matching distribution"
