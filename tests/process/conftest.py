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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests of a cluster run on one worker, so that it is started once."""
    for item in items:
        call = getattr(item, "callspec", None)
        if call is not None and "cluster" in call.params:
            kind = call.params["cluster"]
            item.add_marker(pytest.mark.xdist_group(f"cluster {kind}"))
