"""Which versions a site may have of what the app needs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT: Final = Path(__file__).parents[1]
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NEEDED: Final = [
    Requirement(each)
    for needed in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    for each in needed
]
PIN: Final = re.compile(r"^([\w.-]+)(?:\[[^]]*\])?==(\S+)$", re.MULTILINE)
PINS: Final = {
    canonicalize_name(name): Version(version)
    for file in ("requirements.txt", "requirements-mysql.txt")
    for name, version in PIN.findall((ROOT / file).read_text("utf-8"))
}
FIRST_WITHOUT: Final[dict[str, tuple[str, ...]]] = {
    "channels": ("3.0.3",),
    "cryptography": ("50.0.0",),
    "daphne": ("4.2.2",),
    "django": ("5.2.19", "6.0.10", "6.1.3"),
    "djangorestframework": ("3.18.2",),
    "orjson": ("3.11.6",),
    "pyjwt": ("2.15.0",),
    "pyyaml": ("5.4",),
}
"""The first version of each series in which no hole is known, as of November 2026."""


def floor(needed: Requirement) -> Version | None:
    floors = [each.version for each in needed.specifier if each.operator == ">="]
    return max(map(Version, floors), default=None)


@pytest.mark.parametrize("needed", NEEDED, ids=str)
def test_t32_each_dependency_has_a_floor_that_is_pinned_or_newer(
    needed: Requirement,
) -> None:
    """The tests run with the pins: a version above them is one that nobody tried."""
    lowest, pin = floor(needed), PINS[canonicalize_name(needed.name)]
    assert lowest is not None
    assert lowest <= pin
    assert pin in needed.specifier


def before(version: Version) -> list[Version]:
    series = f"{version.major}.{version.minor}"
    return [Version(f"{series}.{micro}") for micro in range(version.micro)]


@pytest.mark.parametrize("needed", NEEDED, ids=str)
def test_t32_versions_with_known_holes_are_excluded(needed: Requirement) -> None:
    first, *later = map(Version, FIRST_WITHOUT.get(needed.name.lower(), ("0",)))
    lowest = floor(needed)
    assert lowest is not None
    assert lowest >= first
    for each in later:
        assert each in needed.specifier
        assert not any(older in needed.specifier for older in before(each))


def test_each_series_that_the_app_supports_is_looked_at() -> None:
    series = {
        each.removeprefix("Framework :: Django :: ")
        for each in PROJECT["classifiers"]
        if re.fullmatch(r"Framework :: Django :: [\d.]+", each)
    }
    assert {each.rpartition(".")[0] for each in FIRST_WITHOUT["django"]} == series
