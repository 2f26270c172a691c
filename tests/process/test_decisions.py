"""Calls that a person must approve, asked and decided at several processes at once."""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from itertools import chain
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from django.core.signing import b64_decode

from mcp_app.streams.tasks import WORKER_DIED
from tests.drill.databases import CONNECTED
from tests.process.clusters import KINDS, LANES, Cluster, on_clusters
from tests.process.staff import Staff
from tests.process.streaming import Answer, stateless
from tests.reliability.flock import Flock, Killer
from tests.tasks.killing import TAKES_TASKS, patiently

pytestmark = pytest.mark.programs

APPROVED: Final = "Approved. It runs now."
LATE: Final = "Meanwhile, this call was decided, or is over."
FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}


class Till:
    """Asks for payments at several processes at once, and approves them there."""

    def __init__(self, cluster: Cluster, places: int, seconds: float) -> None:
        self.urls, self.seconds = cluster.urls[:places], seconds
        name = cluster.database.rpartition("/")[2]
        self.connect = partial(CONNECTED[KINDS[cluster.kind].vendor], name)
        with closing(Staff(self.urls[0])) as staff:
            cookies = "; ".join(f"{k}={v}" for k, v in staff.cookies.items())
            form = {"approve": 1, "csrfmiddlewaretoken": staff.cookies["csrftoken"]}
        self.headers, self.form = {"Cookie": cookies, **FORM}, urlencode(form).encode()

    def results(self, amount: int, method: str, **params: Any) -> list[Any]:
        """Send it to each at the same time."""
        caller, params = (
            {"X-Name": f"user{amount % LANES}"},
            {"_meta": TAKES_TASKS, **params},
        )
        urls = [f"{url}/private" for url in self.urls]
        begun = [stateless(url, method, caller, **params) for url in urls]
        return [each.whole().messages[-1]["result"] for each in begun]

    def ask(self, amount: int) -> str:
        """Return the task that the same call is, wherever it is made."""
        arguments = {"amount": amount, "seconds": self.seconds}
        begun = self.results(amount, "tools/call", name="pay", arguments=arguments)
        [task] = {each["taskId"] for each in begun}
        return str(task)

    def approve(self, key: int) -> list[str]:
        """Approve a call four times at once; return what each page says."""
        page = f"/admin/mcp_app/task/{key}/change/"
        places = [url.removesuffix("/mcp") for url in self.urls * 4][:4]
        sent = [Answer(each + page, "POST", self.headers, self.form) for each in places]
        return [message_of(each.whole().headers["set-cookie"]) for each in sent]

    def ending(self, amount: int, task: str) -> str:
        """Return how it has ended, as each process says."""
        for _ in patiently():
            found = self.results(amount, "tasks/get", taskId=task)
            if all(each["status"] != "working" for each in found):
                break
        [text] = {
            each["error"]["message"]
            if "error" in each
            else each["result"]["content"][0]["text"]
            for each in found
        }
        return str(text)

    def runs(self) -> Counter[str]:
        with self.connect() as execute:
            return Counter(line[1] for line in execute("SELECT * FROM drill_ledger"))

    def settle(self, amounts: range) -> list[tuple[str, int]]:
        """Return how the call of each amount ends, and how often it has run."""
        lines = [f"paid {each}" for each in amounts]
        with ThreadPoolExecutor(4) as pool, self.connect() as execute:
            tasks = list(pool.map(self.ask, amounts))
            keys = dict(execute("SELECT public_id, id FROM mcp_app_task"))
            assert self.runs().keys().isdisjoint(lines)
            told = Counter(chain(*pool.map(self.approve, map(keys.get, tasks))))
            assert told == {APPROVED: len(amounts), LATE: 3 * len(amounts)}
            endings = list(pool.map(self.ending, amounts, tasks))
        runs = self.runs()
        return [(end, runs[line]) for end, line in zip(endings, lines, strict=True)]


def message_of(cookie: str) -> str:
    """Return what the next page says."""
    [data] = re.findall(r'messages="?([^:;]+)', cookie)
    packed = b64_decode(data.removeprefix(".").encode())
    text = zlib.decompress(packed) if data[0] == "." else packed
    return str(json.loads(text)[0][3])


@on_clusters("postgresql", others=["mariadb"])
def test_each_call_is_decided_once_and_runs_once(cluster: Cluster) -> None:
    amounts = range(1_000, 1_050)
    found = Till(cluster, places=2, seconds=0).settle(amounts)
    assert found == [(f"Paid {each}.", 1) for each in amounts]


@pytest.mark.long
@on_clusters("postgresql", others=["mariadb"])
def test_none_runs_twice_where_workers_are_killed(cluster: Cluster) -> None:
    amounts = range(2_000, 2_500)
    with Flock(cluster.environment, 2) as flock, ExitStack() as stack:
        for url in flock.urls:
            stack.enter_context(flock.busy(url))
        stack.enter_context(Killer(flock, seed=1))
        found = Till(cluster, places=4, seconds=0.5).settle(amounts)
    lost = Counter(runs for end, runs in found if end == WORKER_DIED)
    assert lost[1] > 0
    assert lost.keys() <= {0, 1}
    paid = {(f"Paid {each}.", 1) for each in amounts}
    assert len(paid & {*found}) == len(amounts) - lost.total()
