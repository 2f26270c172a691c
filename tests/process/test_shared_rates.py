"""T20: real processes share a person's rate, by what they write into their rows."""

from __future__ import annotations

import json
from typing import Final

import pytest

from tests.drill.running import DrillServer, started
from tests.process.clusters import Cluster, on_clusters, run_python
from tests.process.streaming import stateless
from tests.process.test_outages import eventually

pytestmark = pytest.mark.programs

LIMITS: Final = {"request_rate": 120, "request_burst": 20, "batch": 20}
DEMAND: Final = """
import django, json
django.setup()
from mcp_app.models import Worker
rows = Worker.objects.exclude(demand="").values_list("demand", flat=True)
print(json.dumps([json.loads(each)["demand"] for each in rows]))
"""


def asks(server: DrillServer, name: str) -> int:
    path = f"{server.url}/private"
    return stateless(path, "tools/list", headers={"X-Name": name}).whole().status


@on_clusters("postgresql", others=["sqlite", "mariadb"])
def test_t20_two_processes_know_of_one_another(cluster: Cluster) -> None:
    environment = {**cluster.environment, "MCP_LIMITS": json.dumps(LIMITS)}
    servers = [started("uvicorn", environment) for _ in range(2)]
    try:
        statuses: set[int] = set()

        def is_shared() -> bool:
            for _ in range(20):
                statuses.update(asks(each, "member0") for each in servers)
            demands = json.loads(run_python(environment, "-c", DEMAND))
            names = [name for each in demands for name in each]
            return len(names) > len(set(names)) and statuses == {200, 429}

        eventually(is_shared)
        assert [asks(each, "member1") for each in servers] == [200, 200]
        assert "member0" not in run_python(environment, "-c", DEMAND)
    finally:
        for each in servers:
            assert each.stop() == 0, each.output
