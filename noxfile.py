"""The tests without programs, on each Python with each Django that it has: `nox`."""

from __future__ import annotations

from itertools import product

import nox

PAIRS = [("3.11", "5.2"), *product(["3.12", "3.13", "3.14"], ["5.2", "6.0", "6.1"])]


@nox.session
@nox.parametrize(("python", "django"), PAIRS)
def tests(session: nox.Session, django: str) -> None:
    session.install("-r", "requirements.txt", "-r", "requirements-test.txt")
    session.install(f"django~={django}.0")
    session.run("pytest", "-n", "2", "-m", "not long and not programs")
