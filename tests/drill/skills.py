"""Skills that staff wrote, and a server that offers them alone."""

from __future__ import annotations

import json
from typing import Any, Final

from mcp_app.models import Blob, Resource, Server
from tests.published import published

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
    files = [
        {"path": path, "upload": Blob.objects.keep(content).digest}
        for path, content in FILES.items()
    ]
    metadata = {"author": "shop", "version": "2026-01-01", "no": [1, 2.5, None]}
    config = {
        "frontmatter": {"license": "MIT", "metadata": metadata},
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
