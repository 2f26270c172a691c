"""What every test of a cluster needs: its staff, and its part that only writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final

from tests.process.clusters import CHANGING, Cluster
from tests.process.operating import Operator
from tests.process.staff import Staff

FRESHNESS: Final = 0.25
"""As in `mcp_app.invalidation.workers`, which needs a configured Django."""
PATIENCE_S: Final = 60.0
"""What is told later counts as untold."""


@dataclass(frozen=True, slots=True)
class Site:
    cluster: Cluster
    staff: Staff
    writer: Operator
    operator: Operator
    patience: float = PATIENCE_S

    def key(self, model: str, name: str) -> str:
        return str(self.cluster.keys[model][name])

    @staticmethod
    def changing(url: str) -> str:
        """Return where a process serves what changes, and nothing else."""
        return f"{url}/{CHANGING}"


@contextmanager
def site(cluster: Cluster, patience: float = PATIENCE_S) -> Iterator[Site]:
    """Let staff log in, until the block ends."""
    with (
        closing(Operator(cluster.environment, faulty=True)) as writer,
        closing(Operator(cluster.environment)) as operator,
        closing(Staff(cluster.urls[0])) as staff,
    ):
        yield Site(cluster, staff, writer, operator, patience)
