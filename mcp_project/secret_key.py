"""The secret key of a development checkout: made once, kept beside the database."""

from __future__ import annotations

import secrets
from pathlib import Path


def development_secret_key(path: Path) -> str:
    """The key in the file at `path`, which is made, readable by its owner, if absent.

    Processes that start at the same time agree on one key.
    """
    if not path.exists():
        _publish(path, secrets.token_urlsafe(50))
    return path.read_text(encoding="ascii").strip()


def _publish(path: Path, key: str) -> None:
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    draft.touch(mode=0o600)
    draft.write_text(f"{key}\n", encoding="ascii")
    try:
        # A link appears with its content, and never replaces another process's key.
        path.hardlink_to(draft)
    except FileExistsError:
        return
    finally:
        draft.unlink()
