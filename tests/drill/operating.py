"""Runs a command of the site for each line, and says when it has returned.

As a program: to start one for each command would take most of a test's time.  A line
is the JSON of a list, the command and its arguments; what is said is a pair, whether it
was done, and what was written.
"""

from __future__ import annotations

import json
import sys
from io import StringIO

import django
from django.core.management import CommandError, call_command


def main() -> None:
    django.setup()
    for line in sys.stdin:
        written, beside = StringIO(), StringIO()
        try:
            call_command(*json.loads(line), stdout=written, stderr=beside)
        except CommandError as error:
            _say(done=False, said=str(error))
        else:
            _say(done=True, said=written.getvalue().strip())


def _say(*, done: bool, said: str) -> None:
    sys.stdout.write(f"{json.dumps([done, said])}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
