"""Every scored scenario, and the demanded others, without failure or warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import suite
from tests.conformance.scenarios import (
    DEMANDED,
    EXERCISED,
    SCORED,
    STATEFUL,
    STATELESS,
)
from tests.drill.running import running
from tests.drill.servers import SERVERS

pytestmark = pytest.mark.skipif(bool(suite.missing()), reason=suite.missing())

GOOD = {"SUCCESS", "INFO"}


@pytest.mark.parametrize("revision", [STATEFUL, STATELESS])
@pytest.mark.parametrize("server", SERVERS)
def test_requirements(server: str, revision: str, tmp_path: Path) -> None:
    # At its end the server itself answers for every message that it sent.
    with running(server) as url:
        outcome = suite.run(url, revision, tmp_path)
    assert faults(outcome, SCORED[revision] | DEMANDED[revision]) == {}
    assert outcome.status == 0, outcome.text


def faults(outcome: suite.Outcome, scenarios: frozenset[str]) -> dict[str, list[str]]:
    """Return scenarios that did not run, or have a check that is not good."""
    found = {scenario: _complaints(outcome, scenario) for scenario in scenarios}
    return {scenario: faults for scenario, faults in found.items() if faults}


def _complaints(outcome: suite.Outcome, scenario: str) -> list[str]:
    checks = outcome.checks.get(scenario, ())
    bad = [str(check) for check in checks if check.status not in GOOD]
    succeeded = {check.id for check in checks if check.status == "SUCCESS"}
    bad += sorted(EXERCISED.get(scenario, frozenset()) - succeeded)
    if not succeeded:
        bad.append("No check of this scenario succeeded.")
    return bad
