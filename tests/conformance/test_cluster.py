"""The official suite against four processes, each request at the next of them.

What needs the log of a request is not asked for yet: an answer of a client to a
question must come to the process that asked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.conformance import suite
from tests.conformance.scenarios import DEMANDED, SCORED, STATEFUL, STATELESS
from tests.conformance.test_suite import faults
from tests.drill.spreading import spread

pytestmark = pytest.mark.skipif(bool(suite.missing()), reason=suite.missing())

NEEDS_THE_LOG: Final = frozenset(
    {
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "tools-call-elicitation",
        "tools-call-sampling",
    }
)
PATIENCE_MS: Final = 5_000
"""Those that need the log end when it is over."""


@pytest.mark.parametrize("revision", [STATEFUL, STATELESS])
def test_requirements(revision: str, tmp_path: Path) -> None:
    with spread(4) as url:
        outcome = suite.run(url, revision, tmp_path, patience_ms=PATIENCE_MS)
    scenarios = SCORED[revision] | DEMANDED[revision]
    assert faults(outcome, scenarios - NEEDS_THE_LOG) == {}
