"""Whether a test that failed among thousands fails alone, too.

    python -m tests.once_more STATUS

STATUS is what pytest ended with.  Up to `MOST` failed tests run once more, one after
the other with nothing beside them.  One that passes then is unsteady: it is named, so
that it is mended, but it decides about nobody's release.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

FAILED: Final = Path(".pytest_cache/v/cache/lastfailed")
GROUP: Final = re.compile(r"@[^\]]*$")
"""What `--dist loadgroup` adds to a test's id."""
MOST: Final = 5
"""So many of ten thousand can be chance; beyond that something is broken."""


def failed(file: Path = FAILED) -> list[str]:
    """Return the ids of the tests that failed when pytest ran last."""
    if not file.exists():
        return []
    return sorted(GROUP.sub("", each) for each in json.loads(file.read_text()))


def main(status: int) -> int:
    """Return the status to end with: 0 where each that failed passes alone."""
    again = failed()
    if status != pytest.ExitCode.TESTS_FAILED or not 0 < len(again) <= MOST:
        return status
    _say("Once more, alone:", *again)
    command = [sys.executable, "-m", "coverage", "run", "-m", "pytest", *again]
    ended = subprocess.run(command, check=False).returncode
    if ended == pytest.ExitCode.OK:
        _say("UNSTEADY, to be mended:", *again)
    return ended


def _say(*lines: str) -> None:
    sys.stdout.write("\n" + "\n  ".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1])))
