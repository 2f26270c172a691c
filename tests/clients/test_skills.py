"""The TypeScript SDK lists skills, and verifies each file, in both eras."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.clients.node import report_of
from tests.drill.skills import FILES, ROOT, serving_skills
from tests.protocol.test_skills import random_documents
from tests.scripting import STATEFUL, STATELESS


@pytest.fixture
def documents(tmp_path: Path) -> str:
    path = tmp_path / "documents.json"
    path.write_text(json.dumps(random_documents(1_000)))
    return str(path)


def test_it_verifies_every_file(documents: str, tmp_path: Path) -> None:
    with serving_skills("uvicorn", tmp_path) as url:
        for revision in (STATEFUL, STATELESS):
            report = report_of("skills.mjs", url, revision, documents)
            assert report["version"] == revision
            assert report["supported"] == [True, True]
            assert report["invalid"] == []
            verified = [is_verified for is_verified, _ in report["files"].values()]
            assert verified == [True] * (len(FILES) + 1)
            assert f"{ROOT}/assets/stamp%20one.png" in report["files"]
            assert report["children"] == ["RULES.md", "old"]
            # A second reader of YAML takes what we render for what it was.
            assert report["differing"] == []
