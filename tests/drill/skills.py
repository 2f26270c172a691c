"""Skills that staff wrote, and a server that offers them alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.drill.piped import database, environment
from tests.drill.running import ROOT as DIRECTORY
from tests.drill.running import THERE, running

SLUG: Final = "skills"
ROOT: Final = "skill://shop/refunds"
SECRET: Final = "skill://shop/salaries"
FILES: Final = {
    "references/RULES.md": b"# Rules\n\nNever more than was paid.\n",
    "references/old/RULES.md": b"# Old rules\n",
    "assets/stamp one.png": b"\x89PNG\0",
}


def write_skills(access: str = "public") -> list[Any]:
    """Publish a server with two skills: one with files, one for few people."""
    from mcp_app.models import Blob, Resource, Server  # noqa: PLC0415 - Django is set up
    from tests.published import published  # noqa: PLC0415

    files = [
        {"path": path, "upload": Blob.objects.keep(content).digest}
        for path, content in FILES.items()
    ]
    more = {"metadata": {"version": "2026-01-01"}, "x-shop": {"no": [1, 2.5, None]}}
    config = {
        "frontmatter": {"license": "MIT", **more},
        "body": "# Refunds\n\nSee references/RULES.md — first.\n",
    }
    columns = {"kind": "skill", "tags": SLUG}
    refunds = Resource(
        name="refunds",
        description="When a customer wants money back.",
        uri=f"{ROOT}/SKILL.md",
        config=json.dumps({**config, "files": files}),
        **columns,
    )
    salaries = Resource(
        name="salaries",
        description="When somebody asks what people earn.",
        uri=f"{SECRET}/SKILL.md",
        config=json.dumps({**config, "files": files[:1]}),
        permission="shop.salaries",
        **columns,
    )
    server = Server(
        slug=SLUG, access=access, selection="tags", tags=SLUG, instructions="Be kind."
    )
    return [published(each) for each in (server, refunds, salaries)]


@contextmanager
def serving_skills(server: str, directory: Path, slug: str = SLUG) -> Iterator[str]:
    """Run a server that has the skills; yield the address of theirs.

    With the slug "folders" they are folders beside the code.
    """
    env = environment(database(directory))
    subprocess.run([sys.executable, "-c", _PREPARE], cwd=DIRECTORY, env=env, check=True)
    own = {"DATABASE_URL": env["DATABASE_URL"], "SKILL_FOLDERS": "1"}
    with running(server, {**own, **THERE}) as url:
        yield f"{url}/{slug}"


_PREPARE: Final = """
import django
django.setup()
from mcp_app.models import Server
from tests.drill.skills import write_skills
from tests.published import published
write_skills()
tags = {"selection": "tags", "tags": "folders"}
published(Server(slug="folders", access="public", **tags))
"""
