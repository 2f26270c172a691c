"""Clusters, each started once for the tests of a worker that ask for it."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.drill.running import DrillServer, started
from tests.process import clusters
from tests.process.clusters import Cluster
from tests.process.operating import Operator
from tests.reliability.site import Site, site


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> None:
    """Let servers hear SIGINT: a shell lets what runs in its background ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with clusters.cluster(request.param) as made:
        yield made


@pytest.fixture(scope="session")
def served(cluster: Cluster) -> Iterator[Site]:
    """The cluster, its staff, and its part that only writes."""
    with site(cluster) as found:
        yield found


@pytest.fixture(scope="session")
def operator(served: Site) -> Operator:
    return served.operator


@pytest.fixture
def doomed(cluster: Cluster) -> Iterator[DrillServer]:
    """One more process of the cluster, which a test may kill or stop."""
    server = started("uvicorn", cluster.environment)
    yield server
    server.kill()
