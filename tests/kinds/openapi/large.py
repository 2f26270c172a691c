"""Reads large documents in a process of its own, and prints what that took in MiB.

python -m tests.kinds.openapi.large json|yaml
"""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import Any, Final

OPERATIONS: Final = 1_200


def large_document(size: int) -> bytes:
    """Return a document of 1,200 operations whose JSON has about so many bytes."""
    text = "What it does, at length. " * (size // OPERATIONS // 25 - 20)
    schemas: dict[str, Any] = {
        f"S{n:02}": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": text[: size // 40_000]},
                # Circles of ten: each operation needs ten definitions.
                "next": {"$ref": f"#/components/schemas/S{n // 10}{(n + 1) % 10}"},
            },
        }
        for n in range(100)
    }
    paths = {
        f"/things/{n}/{{id}}": {
            "post": {
                "operationId": f"doThing{n}",
                "description": text,
                "parameters": [
                    {"name": "id", "in": "path", "schema": {"type": "integer"}}
                ],
                "requestBody": {
                    "content": {
                        "application/json": {
                            "schema": {"$ref": f"#/components/schemas/S{n % 100:02}"}
                        }
                    }
                },
            }
        }
        for n in range(OPERATIONS)
    }
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Large"},
        "paths": paths,
        "components": {"schemas": schemas},
    }
    return json.dumps(document).encode()


def as_yaml(content: bytes) -> bytes:
    """Return JSON as the YAML that people write: in blocks."""
    import yaml  # noqa: PLC0415

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(json.loads(content), Dumper=dumper, sort_keys=False)
    return text.encode()


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(path: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django  # noqa: PLC0415

    django.setup()
    from mcp_app.egress.sites import usable_sites  # noqa: PLC0415
    from mcp_app.kinds.openapi.offers import offers_of  # noqa: PLC0415
    from mcp_app.kinds.openapi.reading import read_document  # noqa: PLC0415
    from mcp_app.models.openapi import pack_offers  # noqa: PLC0415

    with open(path, "rb") as file:
        content = file.read()
    before = _peak()
    offers = offers_of(read_document(content, 2**25), usable_sites()["helpdesk"])
    pack_offers([each.to_json() for each in offers])
    usable = sum(not each.bar for each in offers)
    print(json.dumps({"grown": _peak() - before, "offers": usable}))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
