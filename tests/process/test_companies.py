"""ID-JAGs of a company that are shown at several processes at the same time."""

from __future__ import annotations

import json
from collections import Counter
from typing import Final

import pytest

from mcp_app.protocol.oauth.requests import JWT_BEARER
from tests.auth.issuers.loopback_issuer import loopback_issuer
from tests.process.apps import answers_at_once
from tests.process.clusters import GUARDED, ORIGIN, Cluster, on_clusters
from tests.process.rows import one_number
from tests.reliability.flock import Flock

pytestmark = [pytest.mark.programs, pytest.mark.long]

ROUNDS: Final = 5
EACH: Final = 10
"""Requests at each process in a round; it serves 16 programs at a time."""
CLIENT: Final = {"client_id": "claude", "client_secret": "a secret of claude's"}
ISSUED: Final = """
SELECT COUNT(*) FROM mcp_app_issuedtoken JOIN mcp_app_connection
ON mcp_app_connection.token_id = mcp_app_issuedtoken.token_id WHERE issuer = 'acme'
"""


@on_clusters("postgresql", others=["mariadb"])
def test_an_assertion_at_all_processes_is_one_key(cluster: Cluster) -> None:
    with loopback_issuer() as company:
        clients = {"claude": {"secret": CLIENT["client_secret"]}}
        entries = {"acme": company.entry(path=None, clients=clients)}
        given = {"MCP_OAUTH": json.dumps({"issuers": entries})}
        with Flock({**cluster.environment, **given}) as flock:
            for keys in (1, 2):
                named = {"aud": ORIGIN, "resource": f"{ORIGIN}/mcp/{GUARDED}"}
                assertion = company.id_jag(**named, sub="user0")
                form = {"grant_type": JWT_BEARER, "assertion": assertion, **CLIENT}
                found: Counter[str] = Counter()
                for _ in range(ROUNDS):
                    for each in answers_at_once(flock.urls * EACH, form):
                        found[each.json().get("error", "a key")] += 1
                assert found == {"a key": 1, "invalid_grant": 199}
                assert one_number(cluster.database, ISSUED) == keys
