"""The official SDK traces a call, and the trace goes on here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.clients.facts import STATEFUL, STATELESS
from tests.drill.piped import database, environment
from tests.drill.running import ROOT, running

PATIENCE_S = 120
TRACING = '{"sample": 0, "parents": "%s"}'


@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_its_span_is_the_parent_of_ours(tmp_path: Path, transport: str) -> None:
    written = tmp_path / "spans"
    own = {"SPANS": str(written), "MCP_TRACING": TRACING % "all"}
    if transport == "http":
        with running("uvicorn", own) as url:
            of_client = _spans(_run(url))
    else:
        own["MCP_TRACING"] = TRACING % "signed-in"
        of_client = _spans(_run(environment=environment(database(tmp_path), **own)))
    ours = _spans(written.read_text("utf-8"))
    places = {_place(each): each for each in of_client}
    counts = Counter[tuple[str, str]]()
    for each in ours:
        parent = places[each["context"]["trace_id"], each["parent_id"]]
        assert each["attributes"]["mcp.method.name"] in parent["name"]
        assert each["kind"] == "SpanKind.SERVER"
        counts[each["attributes"]["mcp.protocol.version"], each["name"]] += 1
    assert counts == {
        (STATEFUL, "initialize"): 1,
        (STATELESS, "server/discover"): 1,
        **{(era, "tools/list"): 1 for era in (STATEFUL, STATELESS)},
        **{(era, "tools/call drill_add"): 3 for era in (STATEFUL, STATELESS)},
    }


def _run(*arguments: str, **options: Any) -> str:
    command = [sys.executable, "-m", "tests.clients.traced", *arguments]
    done = subprocess.run(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_S,
        check=True,
        **({"env": options["environment"]} if options else {}),
    )
    output: str = done.stdout
    return output


def _spans(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def _place(span: dict[str, Any]) -> tuple[str, str]:
    return span["context"]["trace_id"], span["context"]["span_id"]
