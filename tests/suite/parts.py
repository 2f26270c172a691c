"""What `make test` and `make test-all` consist of.

The parts of a lane run one after the other, and lanes beside each other: tests that
drive other programs wait most of the time.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from tests.suite.selecting import DRIVING, IN_PROCESS

GUARDS: Final = "tests.conformance.proving"
SECRECY: Final = "results/secrecy"
SECRECY_ROOMS: Final = "account,attacks,auth,oauth"
"""Whose tests are searched for secrets by `make test`, too."""
SETTINGS: Final = {
    "DATABASE_URL": "sqlite://:memory:",
    "DJANGO_SETTINGS_MODULE": "tests.settings",
}
HANG_S: Final = 600
"""So long no test of `make test` takes: the worker ends, and the test is named."""
HALF: Final = max(1, len(os.sched_getaffinity(0)) // 2)
"""Workers that compute all the time: the other lane has the other processors."""
SHORT: Final = ("--rounds", "5", "--seed", "1")
"""How `tests.reliability` is brief; with a seed it leaves the document alone."""


@dataclass(frozen=True, slots=True)
class Part:
    """A command; `environment` is added to what everything is given."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    has_tests: bool = False


Lane: TypeAlias = tuple[Part, ...]
Stages: TypeAlias = tuple[tuple[Lane, ...], ...]
"""Lanes of a stage run beside each other, stages one after the other."""


def python(*arguments: str) -> list[str]:
    """Return the command that runs the interpreter of the suite."""
    return [sys.executable, *arguments]


def pytest(name: str, *options: str, workers: int, **environment: str) -> Part:
    """Return a part that runs the tests which `tests.suite.selecting` names so."""
    # tests/suite/ordering.py says in which order, and why.
    ordered = ("-n", str(workers), "--dist", "loadgroup", "--no-loadscope-reorder")
    return Part(
        name,
        python("-m", "pytest", *ordered, f"--part={name}", *options),
        environment,
        has_tests=True,
    )


def _static() -> Lane:
    return (
        Part("ruff check", ["ruff", "check", "."]),
        Part("ruff format", ["ruff", "format", "--check", "."]),
        Part("mypy", ["mypy"]),
        Part("import-linter", ["lint-imports"]),
        Part(
            "migrations",
            python("manage.py", "makemigrations", "--check", "--dry-run"),
            SETTINGS,
        ),
        Part("check --deploy", _check(), _deployed()),
    )


def _check() -> list[str]:
    return python("manage.py", "check", "--deploy", "--fail-level", "WARNING")


def _deployed() -> dict[str, str]:
    """Return what a production deployment sets."""
    return {
        "DEBUG": "off",
        "ALLOWED_HOSTS": "mcp.example.com",
        "CSRF_TRUSTED_ORIGINS": "https://mcp.example.com",
        "SECRET_KEY": secrets.token_urlsafe(50),
        "SECURE_HSTS_INCLUDE_SUBDOMAINS": "on",
        "SECURE_HSTS_PRELOAD": "on",
        "REDIS_URL": "redis://127.0.0.1:6379/0",
        "MCP_PUBLIC_URL": "https://mcp.example.com/mcp",
    }


def _secrecy() -> Part:
    return Part("secrecy", python("-m", "tests.secrecy"), {"SECRECY": SECRECY})


def suite() -> Stages:
    """Return what a change can break."""
    fast = ("-m", "not long", "-o", f"faulthandler_timeout={HANG_S}")
    secrecy = {"SECRECY": SECRECY, "SECRECY_ROOMS": SECRECY_ROOMS}
    return (
        (
            (
                *_static(),
                pytest(IN_PROCESS, *fast, workers=HALF, **secrecy),
                _secrecy(),
            ),
            (pytest(DRIVING, *fast, workers=3),),
        ),
    )


def whole_suite() -> Stages:
    """Return everything: all cases, coverage, messages, secrets, guards, long cases."""
    reliability = python("-m", "tests.reliability", *SHORT)
    return (
        (
            (*_static(), *_coverage(SECRECY=SECRECY)),
            (pytest(DRIVING, workers=3, SECRECY=SECRECY),),
        ),
        (
            (
                Part("messages", python("-m", "tests.suite.messages")),
                _secrecy(),
                Part("guards", python("-m", GUARDS, "--all", "-j", "2")),
            ),
            (Part("reliability", reliability),),
        ),
    )


def coverage() -> Stages:
    """Return the measurement of the in-process rooms, with all their cases."""
    return (((*_coverage(),),),)


def _coverage(**environment: str) -> Lane:
    tests = pytest(IN_PROCESS, workers=2, **environment)
    measured = [sys.executable, "-m", "coverage", "run", *tests.command[1:]]
    return (
        Part("coverage erase", ["coverage", "erase"]),
        replace(tests, command=measured),
        Part("coverage combine", ["coverage", "combine", "--quiet"]),
        Part("coverage report", ["coverage", "report"]),
    )
