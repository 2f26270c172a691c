"""The command line of the MCP Inspector, in both eras.

A run makes one request; it never answers a question and hears nothing afterwards.  The
inspector looks the tool up before it calls it, so that an unknown one never gets to the
server.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from tests.clients import facts
from tests.clients.facts import STATEFUL, STATELESS
from tests.clients.node import MODULES, node

SERVER = "uvicorn"

INSPECTOR: Final = (
    MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
)

ERAS: Final = {STATEFUL: "legacy", STATELESS: "modern"}

ERROR_RESULT = 5
"""The exit status for a result with `isError`."""

Run: TypeAlias = Callable[..., tuple[int, dict[str, Any], str]]


@pytest.fixture
def run(endpoint: str, era: str, tmp_path: Path) -> Run:
    """Return a function that makes one request.

    It gives the exit status, the result, and what was written beside it.
    """

    def run(method: str, *options: str) -> tuple[int, dict[str, Any], str]:
        ended = node(
            *(INSPECTOR, "--cli", endpoint, "--protocol-era", ERAS[era]),
            *("--format", "json", "--method", method, *options),
            # It keeps a catalog in the home folder.
            HOME=str(tmp_path),
        )
        reply = json.loads(ended.stdout) if ended.stdout else {}
        return ended.returncode, reply.get("result", {}), ended.stderr

    return run


def result(ended: tuple[int, dict[str, Any], str]) -> dict[str, Any]:
    status, found, written = ended
    assert status == 0, written
    return found


@pytest.mark.long
def test_negotiation(run: Run, era: str) -> None:
    found = result(run("initialize"))
    assert found["protocolVersion"] == era
    assert found["serverInfo"]["name"]


def test_lists_tools_that_any_client_can_use(run: Run) -> None:
    status, found, written = run("tools/list", "--strict")
    assert status == 0, written
    assert "0 errors" in written
    names = [tool["name"] for tool in found["tools"]]
    assert sum(name.startswith("plain_") for name in names) == facts.PLAIN_TOOLS
    assert set(facts.CONTENT) <= set(names)


@pytest.mark.long
@pytest.mark.parametrize("tool", ["test_multiple_content_types", "test_resource_link"])
def test_content_blocks(run: Run, tool: str) -> None:
    found = result(run("tools/call", "--tool-name", tool))
    assert found["content"] == facts.CONTENT[tool]


def test_structured_result(run: Run) -> None:
    arguments = ("--tool-arg", "a=20", "b=22")
    found = result(run("tools/call", "--tool-name", "drill_add", *arguments))
    assert found["content"] == [facts.text("42")]
    assert found["structuredContent"] == {"result": 42}


@pytest.mark.long
def test_any_json_comes_back(run: Run) -> None:
    arguments = ("--tool-args-json", json.dumps({"value": facts.ANY_JSON}))
    found = result(run("tools/call", "--tool-name", "drill_echo", *arguments))
    assert found["structuredContent"] == {"result": facts.ANY_JSON}


@pytest.mark.long
def test_failure_of_a_tool(run: Run) -> None:
    status, found, _ = run("tools/call", "--tool-name", "test_error_handling")
    assert status == ERROR_RESULT
    assert found["isError"] is True
    assert found["content"] == [facts.text(facts.FAILURE)]


@pytest.mark.long
def test_lists_resources(run: Run) -> None:
    resources = result(run("resources/list"))["resources"]
    templates = result(run("resources/templates/list"))["resourceTemplates"]
    assert resources[0]["uri"] == facts.STATIC_TEXT
    assert facts.TEMPLATE in [template["uriTemplate"] for template in templates]


@pytest.mark.long
@pytest.mark.parametrize("uri", ["test://static-binary", "test://template/123/data"])
def test_reads_resources(run: Run, uri: str) -> None:
    found = result(run("resources/read", "--uri", uri))
    assert found["contents"] == [facts.RESOURCES[uri]]


@pytest.mark.long
def test_absent_resource(run: Run) -> None:
    status, found, written = run("resources/read", "--uri", facts.ABSENT)
    assert status != 0
    assert found == {}
    assert "Resource not found" in written


@pytest.mark.long
def test_lists_prompts(run: Run) -> None:
    prompts = result(run("prompts/list"))["prompts"]
    assert set(facts.PROMPTS) <= {prompt["name"] for prompt in prompts}


@pytest.mark.long
def test_gets_a_prompt(run: Run) -> None:
    arguments, content = facts.PROMPTS["test_prompt_with_arguments"]
    given = [f"{name}={value}" for name, value in arguments.items()]
    prompt = ("--prompt-name", "test_prompt_with_arguments", "--prompt-args", *given)
    found = result(run("prompts/get", *prompt))
    assert [message["content"] for message in found["messages"]] == content


@pytest.mark.long
def test_calls_side_by_side(run: Run) -> None:
    arguments = ("--tool-arg", "a=20", "b=22")
    load = ("--load", "--load-requests", "40", "--load-concurrency", "20")
    summary = result(run("tools/call", "--tool-name", "drill_add", *arguments, *load))
    assert (summary["ok"], summary["errors"]) == (40, 0), summary["errorMessages"]


@pytest.mark.long
@pytest.mark.parametrize("era", [STATEFUL])
def test_log_level_of_a_session(run: Run) -> None:
    assert result(run("logging/setLevel", "--log-level", "debug")) == {}
