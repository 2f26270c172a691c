"""One server of the fixture set for each kind of ASGI server, for all clients."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import Final

import pytest

from tests.browser.loopback import Back, listening
from tests.clients.facts import PLAIN_TOOLS, STATEFUL, STATELESS
from tests.clients.guarded import Guarded
from tests.clients.guarded import guarded as guarding
from tests.clients.people import ByForms, in_chromium
from tests.clients.people import Person as Owner
from tests.clients.person import Person
from tests.clients.signing import Site
from tests.clients.signing import site as signing
from tests.drill.databases import PROGRAMS, ROWS
from tests.drill.piped import database, environment
from tests.drill.running import ROOT, running
from tests.marks import long_cases

ENVIRONMENT: Final = {"NTOOLS": str(PLAIN_TOOLS)}


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave to `make test-all` what a module does not name in `ALWAYS`, if it has it.

    Tests that it has from another module have that one's marks.
    """
    always = getattr(getattr(item, "module", None), "ALWAYS", None)
    if always is not None and getattr(item, "originalname", "") not in always:
        item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def endpoints() -> Iterator[Callable[[str], str]]:
    """Give a function that starts a server of a kind once, and returns its URL.

    Every message that a server sent is checked: one that was wrong fails the run.
    """
    with ExitStack() as servers:

        @cache
        def endpoint(server: str) -> str:
            return servers.enter_context(running(server, ENVIRONMENT))

        yield endpoint


@pytest.fixture(scope="module")
def endpoint(request: pytest.FixtureRequest, endpoints: Callable[[str], str]) -> str:
    """Return the URL of the endpoint; a module may choose its `SERVER`."""
    return endpoints(getattr(request.module, "SERVER", "daphne"))


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarding(tmp_path_factory.mktemp("guarded")) as found:
        yield found


@pytest.fixture(scope="session")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with signing(tmp_path_factory.mktemp("signed")) as found:
        yield found


@pytest.fixture(scope="session")
def back() -> Iterator[Back]:
    with listening() as place:
        yield place


@pytest.fixture(scope="session")
def kim_in_chromium() -> Iterator[Owner]:
    with in_chromium() as person:
        yield person


@pytest.fixture(scope="session", params=["forms", *long_cases("Chromium")])
def kim(request: pytest.FixtureRequest) -> Owner:
    if request.param == "forms":
        return ByForms()
    person: Owner = request.getfixturevalue("kim_in_chromium")
    return person


@pytest.fixture(scope="session")
def stdio_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    file = database(tmp_path_factory.mktemp("stdio"))
    found = environment(file)
    program = f"{PROGRAMS[ROWS][:-1]}{PLAIN_TOOLS})"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=found, check=True)
    return found


@pytest.fixture(params=[STATEFUL, STATELESS])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def person() -> Person:
    return Person()
