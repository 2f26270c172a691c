"""`python -m tests.differential`: the long form, in a process and database of its own.

Prints the table of rules; exits with 1 where a difference has no rule, where a rule
explains more than its share or nothing, or where a message of ours is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import django
from django.core.management import call_command

PROGRAM: Final = "python -m tests.differential"
EXCHANGES: Final = 1000
SEED: Final = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print what was found, and return the exit status."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description=__doc__)
    parser.add_argument("--exchanges", type=int, default=EXCHANGES)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        os.environ["DATABASE_URL"] = f"sqlite:///{directory}/db.sqlite3"
        os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
        django.setup()
        # Each side logs each failure of a tool that is to fail.
        logging.disable(logging.CRITICAL)
        call_command("migrate", verbosity=0)
        running: Any = import_module("tests.differential.running")
        comparison, violations = asyncio.run(
            running.served(options.exchanges, options.seed)
        )
    sys.stdout.write("\n\n".join([*comparison.unexplained, *violations, ""]))
    sys.stdout.write(comparison.report())
    wrong = comparison.unexplained, violations, comparison.too_wide, comparison.idle
    return int(any(wrong))


if __name__ == "__main__":
    sys.exit(main())
