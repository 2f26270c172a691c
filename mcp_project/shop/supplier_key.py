"""How the demo's settings name its supplier, with a key that each start makes anew."""

from __future__ import annotations

import json
import secrets
from typing import Final

NAME: Final = "supplier"
HEADER: Final = "X-Supplier-Key"


def supplier_setting(url: str) -> str:
    """Return `MCP_HTTP` for a demo that is served at a URL on loopback."""
    site = {
        "title": "Supplier",
        "url": f"{url}/{NAME}",
        "networks": ["127.0.0.0/8"],
        "secret_headers": {HEADER: secrets.token_urlsafe(24)},
    }
    return json.dumps({NAME: site})
