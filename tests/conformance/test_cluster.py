"""The official suite against four processes, each request at any of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.conformance import suite
from tests.conformance.scenarios import DEMANDED, SCORED, STATEFUL, STATELESS
from tests.conformance.test_suite import faults, met_by_tasks
from tests.drill.databases import PREPARED
from tests.drill.running import THERE
from tests.drill.spreading import spread
from tests.invalidation.redis_servers import RedisServer

FAR_AWAY: Final = "?init_command=SET%20time_zone%3D'%2B12:45'"
"""The clock of this database is in another time zone than those of the processes."""

pytestmark = pytest.mark.skipif(bool(suite.missing()), reason=suite.missing())


def on_clusters(first: str, *others: str) -> pytest.MarkDecorator:
    """Let both revisions be tried on one cluster; `make test` has the first alone."""
    params = [
        pytest.param(
            kind,
            marks=[
                pytest.mark.xdist_group(f"conformance {kind}"),
                *([pytest.mark.long] if kind in others else []),
            ],
        )
        for kind in (first, *others)
    ]
    return pytest.mark.parametrize("cluster", params, indirect=True, scope="module")


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[str]:
    vendor, _, doorbell = request.param.partition(" ")
    with ExitStack() as stack:
        url = stack.enter_context(PREPARED[vendor]())
        env = {
            "TASK_TOOLS": "1",
            "DATABASE_URL": url + FAR_AWAY if vendor == "mysql" else url,
            **THERE,
        }
        if doorbell:
            redis = RedisServer()
            redis.start()
            stack.callback(redis.kill)
            env["REDIS_URL"] = redis.url
        yield stack.enter_context(spread(4, env, seed=20_251_125))


@on_clusters("postgresql redis", "postgresql", "mysql")
@pytest.mark.parametrize("revision", [STATEFUL, STATELESS])
def test_requirements(cluster: str, revision: str, tmp_path: Path) -> None:
    outcome = suite.run(cluster, revision, tmp_path)
    assert faults(outcome, SCORED[revision] | DEMANDED[revision]) == {}
    assert outcome.status == 0, outcome.text


@on_clusters("postgresql redis", "postgresql", "mysql")
def test_tasks(cluster: str, tmp_path: Path) -> None:
    met_by_tasks(cluster, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("vendor", ["postgresql", "mysql"])
def test_tasks_in_few_processes(vendor: str, processes: int, tmp_path: Path) -> None:
    with PREPARED[vendor]() as database:
        env = {"TASK_TOOLS": "1", "DATABASE_URL": database, **THERE}
        with spread(processes, env) as url:
            met_by_tasks(url, tmp_path)
