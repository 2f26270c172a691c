"""Which tests can import a file: a made-up app, and this one."""

from __future__ import annotations

import grimp
import pytest

from tests.suite.reach import FAR, Reach, Step, of_checkout
from tests.suite.rooms import modules_in_process

OTHER = "tests/low/test_other.py"
USES = "tests/middle/test_uses.py"
TESTS = (
    "tests/attacks/test_hosts.py",
    OTHER,
    "tests/low/test_word.py",
    "tests/low/words/test_letter.py",
    "tests/middle/test_calls.py",
    USES,
    "tests/suite/test_marks.py",
    "tests/test_conf.py",
    "tests/upper/test_page.py",
)
IMPORTS = {
    "mcp_app.middle.calls": ["mcp_app.low.word"],
    "mcp_app.upper.page": ["mcp_app.middle.calls"],
    "mcp_app.asgi": ["mcp_app.upper.page"],
    "tests.low.test_word": ["mcp_app.low.word"],
    "tests.upper.test_page": ["tests.conftest", "tests.suite.plugin"],
    "tests.middle.test_uses": ["mcp_app.middle.calls", "tests.middle.helper"],
}


@pytest.fixture(scope="module")
def reach() -> Reach:
    graph = grimp.ImportGraph()
    for module in ("mcp_app.low", "mcp_app.low.letter", "mcp_app.conf", "tests.odd"):
        graph.add_module(module)
    for importer, imported in IMPORTS.items():
        for each in imported:
            graph.add_import(importer=importer, imported=each)
    return Reach(graph, TESTS, ["tests.suite.plugin"])


def names(steps: list[Step]) -> list[str]:
    return [each.name for each in steps]


def test_the_nearest_come_first(reach: Reach) -> None:
    assert reach.steps(["mcp_app/low/word.py"]) == [
        Step("mirror", ("tests/low/test_word.py",)),
        Step("tests/low", (OTHER, "tests/low/words/test_letter.py")),
        # What imports it comes before the others of its room.
        Step("2 imports away", (USES,)),
        Step("tests/middle", ("tests/middle/test_calls.py",)),
        Step("tests/upper", ("tests/upper/test_page.py",)),
        Step("tests/attacks", ("tests/attacks/test_hosts.py",)),
        Step("tests/*.py", ("tests/test_conf.py",)),
    ]


def test_who_cannot_import_it_is_left_out(reach: Reach) -> None:
    assert names(reach.steps(["mcp_app/upper/page.py"])) == [
        *("mirror", "tests/attacks", "tests/*.py"),
    ]
    assert names(reach.steps(["mcp_app/low/letter.py"])) == ["tests/low", "tests/*.py"]


def test_of_several_each_mirror_comes_first(reach: Reach) -> None:
    first, *_ = reach.steps(["mcp_app/upper/page.py", "mcp_app/middle/calls.py"])
    assert first.modules == ("tests/middle/test_calls.py", "tests/upper/test_page.py")


def test_a_folder_within_a_room_comes_before_the_room(reach: Reach) -> None:
    steps = reach.steps(["mcp_app/low/words/gone.py"])
    assert names(steps) == ["tests/low/words", "tests/low"]


def test_modules_of_a_package_import_it(reach: Reach) -> None:
    assert "tests/middle" in names(reach.steps(["mcp_app/low/__init__.py"]))


@pytest.mark.parametrize(
    ("changed", "modules"),
    [
        ("tests/upper/test_page.py", ["tests/upper/test_page.py"]),
        ("tests/middle/helper.py", ["tests/middle/test_uses.py"]),
        ("tests/low/words/conftest.py", ["tests/low/words/test_letter.py"]),
        ("tests/odd.py", list(TESTS)),
        # The last test imports it, and it serves the others all the same.
        ("tests/conftest.py", [TESTS[-1], *TESTS[:-1]]),
        ("tests/suite/plugin.py", [TESTS[-1], *TESTS[:-1]]),
        ("mcp_app/gone/__init__.py", []),
        ("docs/admin.md", []),
        ("mcp_app/static/mcp_app/admin.css", []),
    ],
)
def test_what_is_no_module_of_the_app(
    reach: Reach, changed: str, modules: list[str]
) -> None:
    assert [one for step in reach.steps([changed]) for one in step.modules] == modules


def test_of_this_checkout() -> None:
    reach = of_checkout()
    steps = reach.steps(["mcp_app/transports/http/host_and_origin.py"])
    assert steps[0] == Step(
        "mirror", ("tests/transports/http/test_host_and_origin.py",)
    )
    assert steps[1].name == "tests/transports/http"
    assert names(steps)[-1] == "tests/*.py"
    assert "tests/protocol" not in names(steps)
    # What all else imports: every room but those that know no app.
    steps = reach.steps(["mcp_app/protocol/jsonrpc.py"])
    listed = [one for step in steps for one in step.modules]
    assert len(listed) == len(set(listed)) < FAR
    assert {each for each in modules_in_process() if "/suite/" not in each} - set(
        listed
    ) == set()
    pages = reach.steps(["mcp_app/templates/mcp_app/account/page.html"])
    assert names(pages) == ["tests/account", "tests/admin"]
    assert names(reach.steps(["mcp_app/static/mcp_app/admin.js"])) == ["tests/admin"]
    tags = reach.steps(["mcp_app/templatetags/mcp_home.py"])
    assert names(tags) == ["tests/admin", "tests/*.py"]
