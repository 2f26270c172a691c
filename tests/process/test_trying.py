"""Try it where each form meets whatever process is free, and where one dies."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from html import unescape
from typing import Any, Final
from uuid import uuid4

import httpx
import pytest

from tests.drill.running import DrillServer
from tests.process.clusters import GUARDED, Cluster, case_on, on_clusters
from tests.process.staff import PATIENCE_S, Staff
from tests.process.trying import fields_of

SIDE_BY_SIDE: Final = 4
TIMES: Final = 20
OTHER: Final = "user0"


def path_of(cluster: Cluster, tool: str) -> str:
    return f"/admin/mcp_app/tool/{cluster.keys['tool'][tool]}/try/"


def for_real(page: str, text: str, **chosen: str) -> dict[str, Any]:
    """Return what a page sends if what is empty is given a text, and all is meant."""
    sent = {name: value or text for name, value in fields_of(page).items()}
    sent.pop("dry", None)
    return {**sent, **chosen}


@pytest.fixture
def staff(cluster: Cluster) -> Iterator[list[Staff]]:
    with closing(Staff(cluster.urls[0])) as admin, ExitStack() as stack:
        others = [stack.enter_context(admin.at(url)) for url in cluster.urls[1:]]
        yield [admin, *others]


@pytest.mark.parametrize(
    ("cluster", "runs"),
    [
        case_on("mariadb", 8),
        case_on("sqlite", 50, long=True),
        case_on("postgresql", 50, long=True),
    ],
    indirect=["cluster"],
)
def test_each_round_of_questions_is_at_another_process(
    cluster: Cluster, staff: list[Staff], runs: int
) -> None:
    path, name = path_of(cluster, "drill_ask_twice"), uuid4().hex

    def ask(number: int) -> str:
        here, there, further = [staff[(number + at) % len(staff)] for at in range(3)]
        question = f"{name} {number}"
        page = there.submit(path, **for_real(here.get(path).text, question)).text
        for answer, at in (("one", further), ("two", here)):
            assert "The tool asks:" in page
            sent = for_real(page, f"{answer} {number}", answer="accept")
            page = at.submit(path, **sent).text
        return page

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        pages = list(pool.map(ask, range(runs)))
    for number, page in enumerate(pages):
        assert f"one {number} two {number}" in page


@on_clusters("mariadb", others=["sqlite", "postgresql"])
def test_what_is_sent_again_is_run_once(cluster: Cluster, staff: list[Staff]) -> None:
    path, key = path_of(cluster, "drill_ledger"), uuid4().hex

    def open_page() -> dict[str, Any]:
        sent = for_real(staff[0].get(path).text, "0")
        argument = next(name for name in sent if name.startswith("argument-"))
        return {**sent, argument: key}

    sent = open_page()

    def send(number: int) -> str:
        return staff[number % len(staff)].submit(path, **sent).text

    with ThreadPoolExecutor(TIMES) as pool:
        pages = list(pool.map(send, range(TIMES)))
    again = [page for page in pages if "it is not run again." in page]
    assert len(again) == TIMES - 1
    # Another page's run is the second one that the function saw.
    sent = open_page()
    assert '"result": 2' in unescape(send(0))


@on_clusters("mariadb", others=["sqlite", "postgresql"])
def test_who_tries_as_another_is_on_record_though_the_process_dies(
    cluster: Cluster, staff: list[Staff], doomed: DrillServer
) -> None:
    path, [here, *_] = path_of(cluster, "drill_sleep"), staff
    chosen = {"server": GUARDED, "who": "user", "user": OTHER, "dry": "1"}
    sent = for_real(here.get(path).text, "60", **chosen)
    history = path.replace("/try/", "/history/")
    record = f"Tried it as {OTHER}."
    assert record not in here.get(history).text
    with here.at(doomed.url) as there, ThreadPoolExecutor(1) as pool:
        call = pool.submit(there.submit, path, **sent)
        end = time.monotonic() + PATIENCE_S
        while record not in here.get(history).text:
            assert time.monotonic() < end
            assert not call.done(), call.result().text
        doomed.kill()
        with pytest.raises(httpx.TransportError):
            call.result()
    assert record in here.get(history).text
