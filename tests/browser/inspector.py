"""What the inspector's command line finds at the endpoint of the demo."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcp_app.protocol.json_types import JsonObject
from tests.clients.node import MODULES, node

PROGRAM: Final = (
    MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
)
ERAS: Final = ("legacy", "modern")


@dataclass(frozen=True)
class Inspector:
    """Asks an endpoint in one era; `home` is where the program keeps its files."""

    endpoint: str
    era: str
    home: Path

    def result(self, method: str, *options: str) -> JsonObject:
        ended = node(
            *(PROGRAM, "--cli", self.endpoint, "--protocol-era", self.era),
            *("--format", "json", "--method", method, *options),
            HOME=str(self.home),
        )
        assert ended.returncode == 0, ended.stderr
        result: JsonObject = json.loads(ended.stdout)["result"]
        return result

    def resources(self) -> dict[str, JsonObject]:
        listed = self.result("resources/list")["resources"]
        return {resource["uri"]: resource for resource in listed}

    def resource(self, uri: str) -> JsonObject:
        content: JsonObject
        [content] = self.result("resources/read", "--uri", uri)["contents"]
        return content
