"""mcp-remote signs in, in Chromium, for programs that speak through pipes alone."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.clients.node import MODULES, NODE, PATIENCE_S
from tests.clients.people import Person
from tests.clients.signing import Site
from tests.drill.ports import free_port
from tests.drill.programs import Program

pytestmark = pytest.mark.xdist_group("signing in")

PROGRAM: Final = MODULES / "mcp-remote" / "dist" / "proxy.js"
ADDRESS: Final = re.compile(r"http://\S+/mcp-oauth/authorize\?\S+\n")
HELLO: Final = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "pipes", "version": "1"},
}


class Bridge(Program):
    asked = 0

    def opens(self, person: Person) -> bool:
        for address in ADDRESS.findall(self.output)[self.asked :]:
            self.asked += 1
            person.lets_in(address.strip())
        return "Proxy established successfully" in self.output

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        self.say(json.dumps(message))
        while line := self.hear(PATIENCE_S):
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == method:
                return answer
        raise AssertionError(f"It ended before it answered {method}.")

    def sum(self) -> Any:
        assert "result" in self.request("initialize", **HELLO)
        names = {each["name"] for each in self.request("tools/list")["result"]["tools"]}
        assert "drill_add" in names
        call = {"name": "drill_add", "arguments": {"a": 20, "b": 22}}
        return self.request("tools/call", **call)["result"]["structuredContent"]


@contextmanager
def bridge(site: Site, person: Person, directory: Path, port: int) -> Iterator[Bridge]:
    # Who would open a browser opens nothing.
    given = {"MCP_REMOTE_CONFIG_DIR": str(directory), "BROWSER": "true"}
    env, options = {**os.environ, **given}, [str(port), "--transport", "http-only"]
    with Bridge([NODE, PROGRAM, site.url, *options], env=env, pipes=True) as made:
        made.wait_until(lambda: made.opens(person), PATIENCE_S)
        yield made


def test_it_signs_in_refreshes_and_signs_in_anew(
    signed: Site, kim_in_chromium: Person, tmp_path: Path
) -> None:
    if not PROGRAM.exists():
        pytest.skip("mcp-remote is missing: `make node` installs it.")
    port = free_port()
    with bridge(signed, kim_in_chromium, tmp_path, port) as first:
        assert first.sum() == {"result": 42}
    assert first.asked == 1
    [stored] = tmp_path.rglob("*_tokens.json")
    before = json.loads(stored.read_text())
    # Its key is refused: it gets another one, and asks nobody.
    stored.write_text(json.dumps({**before, "access_token": "mcp_at_" + "x" * 43}))
    with bridge(signed, kim_in_chromium, tmp_path, port) as second:
        assert second.sum() == {"result": 42}
    assert second.asked == 0
    after = json.loads(stored.read_text())
    assert after["refresh_token"] != before["refresh_token"]
    kim_in_chromium.ends(signed.url, "MCP CLI Proxy")
    with bridge(signed, kim_in_chromium, tmp_path, port) as third:
        assert third.sum() == {"result": 42}
    assert third.asked == 1
