"""The key of a development checkout."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mcp_project.secret_key import development_secret_key


def test_the_key_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "key"
    key = development_secret_key(path)
    assert len(key) >= 50
    assert path.stat().st_mode & 0o777 == 0o600
    assert development_secret_key(path) == key


def test_an_existing_key_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("mine\n")
    assert development_secret_key(path) == "mine"


def test_processes_that_start_together_agree(tmp_path: Path) -> None:
    path = tmp_path / "key"
    with ThreadPoolExecutor(max_workers=8) as pool:
        keys = set(pool.map(development_secret_key, [path] * 32))
    assert len(keys) == 1
    assert list(tmp_path.iterdir()) == [path]
