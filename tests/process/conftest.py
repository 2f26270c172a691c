"""Clusters, each started once for the tests of a worker that ask for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.process import clusters
from tests.process.clusters import Cluster


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster of the kind that the test names as its parameter."""
    with clusters.cluster(request.param) as made:
        yield made
