"""Every scored scenario, and the demanded others, without failure or warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import suite
from tests.conformance.scenarios import (
    DEMANDED,
    EXERCISED,
    SCORED,
    SKILLS,
    STATEFUL,
    STATELESS,
    TASKS,
    WITH_STREAMS,
)
from tests.drill.running import running
from tests.drill.servers import BY_ASGI
from tests.drill.skills import serving_skills
from tests.marks import long_cases

pytestmark = pytest.mark.skipif(bool(suite.missing()), reason=suite.missing())

GOOD = frozenset({"SUCCESS", "INFO"})

# What servers differ in, tests/process/test_servers.py tries.
FIRST = "uvicorn"
OTHERS = [each for each in BY_ASGI if each != FIRST]


@pytest.mark.parametrize("revision", [STATEFUL, STATELESS])
@pytest.mark.parametrize("server", [FIRST, *long_cases(*OTHERS)])
def test_requirements(server: str, revision: str, tmp_path: Path) -> None:
    met(server, {}, revision, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("revision", [STATEFUL, STATELESS])
def test_requirements_of_the_view(revision: str, tmp_path: Path) -> None:
    met("uvicorn", {"MOUNT": "view"}, revision, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("revision", [STATEFUL, STATELESS])
def test_requirements_without_streams(revision: str, tmp_path: Path) -> None:
    """Of the others it is known why they are not met; none of them is, by WSGI."""
    with running("gunicorn") as url:
        outcome = suite.run(url, revision, tmp_path)
    demanded = SCORED[revision] | DEMANDED[revision]
    # What a server does not advertise is skipped.
    found = faults(outcome, demanded, GOOD | {"SKIPPED"})
    assert found.keys() == WITH_STREAMS.keys() & demanded, found


@pytest.mark.long
@pytest.mark.parametrize("server", [FIRST, "gunicorn"])
def test_tasks(server: str, tmp_path: Path) -> None:
    """On SQLite, by ASGI and by WSGI."""
    with running(server, {"TASK_TOOLS": "1"}) as url:
        met_by_tasks(url, tmp_path)


@pytest.mark.parametrize("slug", ["skills", "folders"])
@pytest.mark.parametrize("server", [FIRST, *long_cases("gunicorn")])
def test_skills(server: str, slug: str, tmp_path: Path) -> None:
    """Of rows and of folders, by ASGI and by WSGI, with no check left out."""
    with serving_skills(server, tmp_path, slug) as url:
        outcome = suite.run_scenarios(url, SKILLS, tmp_path)
    assert faults(outcome, frozenset(SKILLS), frozenset({"SUCCESS"})) == {}
    assert outcome.status == 0, outcome.text


def met_by_tasks(url: str, results: Path) -> None:
    outcome = suite.run_scenarios(url, TASKS, results)
    assert faults(outcome, frozenset(TASKS)) == {}
    assert outcome.status == 0, outcome.text


def met(server: str, env: dict[str, str], revision: str, results: Path) -> None:
    # At its end the server itself answers for every message that it sent.
    with running(server, env) as url:
        outcome = suite.run(url, revision, results)
    assert faults(outcome, SCORED[revision] | DEMANDED[revision]) == {}
    assert outcome.status == 0, outcome.text


def faults(
    outcome: suite.Outcome, scenarios: frozenset[str], good: frozenset[str] = GOOD
) -> dict[str, list[str]]:
    """Return scenarios that did not run, or have a check that is not good."""
    found = {each: _complaints(outcome, each, good) for each in scenarios}
    return {scenario: faults for scenario, faults in found.items() if faults}


def _complaints(outcome: suite.Outcome, name: str, good: frozenset[str]) -> list[str]:
    checks = outcome.checks.get(name, ())
    bad = [str(check) for check in checks if check.status not in good]
    succeeded = {check.id for check in checks if check.status == "SUCCESS"}
    bad += sorted(EXERCISED.get(name, frozenset()) - succeeded)
    if not succeeded:
        bad.append("No check of this scenario succeeded.")
    return bad
