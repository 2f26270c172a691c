"""Which test modules can import what changed, the nearest first.

Near is what mirrors a file: its module, its folder, its room.  Of the rooms whose part
of the app imports the file, the test modules follow that import it, by how many imports
lie between, and then the others.  Rooms that mirror no part of the app, and modules at
the top of tests/, look at the whole of it: they are last.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final, TypeAlias

import grimp
from grimp.exceptions import SourceSyntaxError

from tests.suite.rooms import ROOT, modules_in_process, room

PACKAGES: Final = ("mcp_app", "mcp_project", "tests")
MIRRORS: Final = {"mcp_app": "tests", "mcp_project": "tests/project"}
"""Where the tests of a package are."""
WITHOUT_MIRROR: Final = frozenset({"attacks"})
"""Rooms that look at the app from outside."""
OUTSIDE: Final = frozenset(
    {"mcp_app.account_urls", "mcp_app.admin", "mcp_app.asgi", "mcp_app.urls"}
)
"""What sites name: it imports all that can be seen from outside."""
PAGES: Final = "admin"
"""The room whose tests see templates and styles that name no other room, and tags."""
TAGS: Final = "templatetags"
"""Modules that nobody imports but Django, for templates."""
FAR: Final = 1_000

Distances: TypeAlias = dict[str, int]


@dataclass(frozen=True, slots=True)
class Step:
    """Test modules that run together, as paths from the root, the nearest first."""

    name: str
    modules: tuple[str, ...]


class Reach:
    """The imports of a checkout, and its test modules."""

    def __init__(
        self,
        graph: grimp.ImportGraph,
        tests: Sequence[str],
        plugins: Collection[str] = (),
    ) -> None:
        self._graph = graph
        self._tests = tests
        self._plugins = plugins
        """Modules that pytest loads for all tests."""

    def steps(self, files: Iterable[str]) -> list[Step]:
        """Return the tests that can import any of these files, each module once.

        The files are paths from the root; some may be gone.
        """
        files = sorted(files)
        product = [each for each in files if PurePath(each).parts[0] in MIRRORS]
        helpers = [each for each in files if PurePath(each).parts[0] == "tests"]
        distances = self._distances(product)
        listed: set[str] = set()
        steps = []
        for name, modules in (
            *self._of_tests(helpers),
            *self._mirrors(product),
            *self._by_distance(distances),
        ):
            new = [each for each in modules if each not in listed]
            listed.update(new)
            new.sort(key=lambda each: distances.get(_dotted(each), FAR))
            if new:
                steps.append(Step(name, tuple(new)))
        return steps

    def _distances(self, files: Iterable[str]) -> Distances:
        """Return how many imports lie between any of the files and each module."""
        sources = {_dotted(each) for each in files} & self._graph.modules
        distances = dict.fromkeys(sources, 0)
        # A module of a package imports that first.
        packages = [_dotted(each) for each in files if each.endswith("/__init__.py")]
        reached = set(sources).union(
            *(
                self._graph.find_descendants(each)
                for each in packages
                if each in self._graph.modules
            )
        )
        away = 0
        while reached:
            for each in reached:
                distances.setdefault(each, away)
            away += 1
            reached = {
                importer
                for each in reached
                for importer in self._graph.find_modules_that_directly_import(each)
                if importer not in distances
            }
        return distances

    def _of_tests(self, files: list[str]) -> Iterator[tuple[str, list[str]]]:
        """Yield changed test modules, and those that import a changed helper.

        What pytest knows by name serves a folder: of a plugin, all of tests/.
        """
        yield "changed", [each for each in files if each in self._tests]
        for file in files:
            if file not in self._tests:
                importers = self._distances([file])
                folder = self._served(file)
                yield (
                    file,
                    [each for each in self._tests if _dotted(each) in importers],
                )
                if folder is not None:
                    yield file, [each for each in self._tests if _is_in(each, folder)]

    def _served(self, file: str) -> PurePath | None:
        """Return the folder whose tests need a helper that they do not import."""
        path = PurePath(file)
        if _dotted(file) in self._plugins:
            return PurePath("tests")
        if path.name == "conftest.py" or not self._imported(file):
            return path.parent
        return None

    def _imported(self, file: str) -> bool:
        module = _dotted(file)
        return module in self._graph.modules and bool(
            self._graph.find_modules_that_directly_import(module)
        )

    def _mirrors(self, files: list[str]) -> Iterator[tuple[str, list[str]]]:
        mirrors = [mirror(each) for each in files]
        yield "mirror", [str(each) for each in mirrors if str(each) in self._tests]
        for each in sorted({each.parent for each in mirrors}):
            # The top of tests/ has the others within it.
            if each != PurePath("tests"):
                yield str(each), [one for one in self._tests if _is_in(one, each)]
        rooms = {room(each) for each in mirrors} - {""}
        for name in sorted(rooms):
            yield f"tests/{name}", self._room(name)
        if TAGS in rooms or any(PurePath(each).suffix != ".py" for each in files):
            # Pages of one room include those of another.
            yield f"tests/{PAGES}", self._room(PAGES)

    def _by_distance(self, distances: Distances) -> Iterator[tuple[str, list[str]]]:
        away = _rooms_away(distances)
        rooms = sorted(away, key=lambda each: (away[each], each))
        modules = [one for each in rooms for one in self._room(each)]
        importing = [each for each in modules if _dotted(each) in distances]
        for distance in sorted({distances[_dotted(each)] for each in importing}):
            here = [each for each in importing if distances[_dotted(each)] == distance]
            yield f"{distance} imports away", here
        for each in rooms:
            yield f"tests/{each or '*.py'}", self._room(each)

    def _room(self, name: str) -> list[str]:
        return [each for each in self._tests if room(each) == name]


def _rooms_away(distances: Distances) -> Distances:
    """Return how many imports lie between a change and each room that can import it."""
    away: Distances = {}
    for module, distance in distances.items():
        parts = module.split(".")
        if len(parts) > 2 or parts[0] == "mcp_project":
            name = "project" if parts[0] == "mcp_project" else parts[1]
            away[name] = min(distance, away.get(name, FAR))
    if not OUTSIDE.isdisjoint(distances):
        away |= {each: FAR for each in WITHOUT_MIRROR if each not in away}
    return away | ({"": FAR + 1} if distances else {})


def mirror(file: str) -> PurePath:
    """Return the path that a file's own test module has, or would have."""
    path = PurePath(file)
    folder = PurePath(MIRRORS[path.parts[0]], *path.parts[1:-1])
    if path.suffix != ".py":
        named = {each.stem for each in path.parents} | {path.stem}
        here = [each for each in ("account", PAGES) if each in named] or [PAGES]
        return PurePath("tests", here[0], "test_.py")
    name = "init" if path.stem == "__init__" else path.stem
    return folder / f"test_{name}.py"


def _dotted(file: str) -> str:
    path = PurePath(file).with_suffix("")
    return ".".join(path.parts[:-1] if path.name == "__init__" else path.parts)


def _is_in(module: str, folder: PurePath) -> bool:
    return PurePath(module).is_relative_to(folder)


def plugins_of(conftest: Path) -> list[str]:
    """Return the modules that a conftest.py names as plugins."""
    for statement in ast.parse(conftest.read_text(encoding="utf-8")).body:
        match statement:
            case ast.Assign([ast.Name("pytest_plugins")], ast.Tuple() as names):
                return list(ast.literal_eval(names))
    return []


def of_checkout() -> Reach:
    """Return the reach in this checkout; `SyntaxError` if a module cannot be read."""
    plugins = plugins_of(ROOT / "tests/conftest.py")
    try:
        graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    except SourceSyntaxError as error:
        raise SyntaxError(str(error)) from None
    return Reach(graph, modules_in_process(), plugins)
