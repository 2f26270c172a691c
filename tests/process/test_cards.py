"""A card that staff take from strangers is gone at every process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from tests.admin.pages import shown_values
from tests.process.clusters import PROCESSES, Cluster, on_clusters
from tests.process.rows import one_number
from tests.process.staff import Staff
from tests.process.streaming import Answer

pytestmark = [pytest.mark.programs, pytest.mark.long]


def card_statuses(cluster: Cluster) -> list[int]:
    cards = [f"{each}/private/server-card" for each in cluster.urls]
    return [each.whole().status for each in [Answer(it, "GET", {}) for it in cards]]


@on_clusters("postgresql", others=["postgresql-redis", "mariadb"])
def test_an_untick_holds_everywhere_once_it_is_saved(cluster: Cluster) -> None:
    statement = "SELECT id FROM mcp_app_server WHERE slug = 'private'"
    key = one_number(cluster.database, statement)
    page = f"/admin/mcp_app/server/{key}/change/"
    for here, _ in cluster.turns(4):
        with closing(Staff(here)) as staff, ThreadPoolExecutor(1) as thread:
            for tick, status in (("on", 200), (None, 404)):
                form = {**shown_values(staff.get(page)), "listed": tick}
                saved = thread.submit(staff.submit, page, **form)
                # A process that is always asked does not check for each request.
                while not saved.done():
                    card_statuses(cluster)
                assert saved.result().status_code == 302
                assert card_statuses(cluster) == [status] * PROCESSES
