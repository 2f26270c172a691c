"""What the package index shows: addresses of the project, README with whole links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)\s]+)\)")


class Addresses(MetadataHookInterface):
    """Fill `urls` and `readme` from `base`: pages and pictures are those of the tag."""

    def update(self, metadata: dict[str, Any]) -> None:
        base, tag = self.config["base"], f"v{metadata['version']}"
        pages = f"{base}/blob/{tag}"

        def whole(link: re.Match[str]) -> str:
            picture, label, path = link.groups()
            folder = f"{base}/raw/{tag}" if picture else pages
            return f"{picture}{label}({folder}/{path})"

        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": LINK.sub(whole, text),
        }
        metadata["urls"] = {
            "Homepage": base,
            "Documentation": f"{pages}/README.md#documentation",
            "Changelog": f"{pages}/CHANGELOG.md",
            "Issues": f"{base}/issues",
            "Source": base,
        }
