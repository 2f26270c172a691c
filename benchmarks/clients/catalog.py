"""The clients that are driven, their versions, and what they themselves lack."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Any, Final

PYTHON: Final = "python"
NODE: Final = "node"

TRANSPORTS: Final = ("http", "sse", "stdio")
CONTENT: Final = ("text", "image", "audio", "embedded", "link")
CALLS: Final = (*CONTENT, "errors", "structured")
TOKENS: Final = ("right", "wrong", "missing", "revoked")
OFFERS: Final = ("resources", "prompts")
FACETS: Final = (
    *TRANSPORTS,
    *("revision", "tools", "pages"),
    *CALLS,
    *OFFERS,
    *TOKENS,
    *("restart", "signs in"),
)
"""What is looked at."""

SESSION: Final = frozenset({"revoked", "restart"})
"""Needs a client that stays connected between two calls."""
REFUSALS: Final = frozenset({"wrong", "missing", "revoked"})
HEALTH_CHECK: Final = frozenset(FACETS) - {*TRANSPORTS, "right", "wrong", "missing"}
"""What a program does not do that only tries whether it can connect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client in a version.

    `packages` are pinned requirements of pip or npm.  `driver` is a file of `drivers/`,
    which `host`, another client, runs if it is named.  `lacks` has facets that the
    client does not have, so that they are not tried; `limits` those where it falls
    short by itself, whatever a server does.
    """

    name: str
    title: str
    packages: tuple[str, ...]
    driver: str
    kind: str = PYTHON
    host: str = ""
    signs_in: bool = False
    """Whether it is tried to sign in, at a site that fetches no documents."""
    lacks: Set[str] = frozenset()
    limits: Set[str] = frozenset()

    @property
    def transports(self) -> tuple[str, ...]:
        """Those that it has, the newest first."""
        return tuple(each for each in TRANSPORTS if each not in self.lacks)


def _python(name: str, package: str, version: str, *more: str, **own: Any) -> Client:
    """Return a client in Python; `own` has what differs from what the names say."""
    bare = package.partition("[")[0]
    usual = {
        "name": name,
        "title": f"{bare} {version}",
        "packages": (f"{package}=={version}", *more),
        "driver": f"drive_{name.replace('-', '_')}.py",
    }
    return Client(**{**usual, **own})


def _node(name: str, package: str, version: str, *more: str, **own: Any) -> Client:
    """Return a client of node's, as `_python` does; `own` has its driver."""
    packages = (f"{package}@{version}", *more)
    usual = {"title": f"{package} {version}", "packages": packages, "kind": NODE}
    return _python(name, package, version, **{**usual, **own})


def _python_sdk(version: str, *more: str, **own: Any) -> Client:
    title, driver = f"Python SDK {version}", "drive_python_sdk.py"
    usual = {"title": title, "driver": driver}
    return _python(f"python-sdk-{version}", "mcp", version, *more, **{**usual, **own})


def _typescript_sdk(version: str, *more: str, lacks: Set[str] = frozenset()) -> Client:
    name, package = f"typescript-sdk-{version}", "@modelcontextprotocol/sdk"
    title, driver = f"TypeScript SDK {version}", "drive_typescript_sdk.mjs"
    own = {"title": title, "driver": driver, "lacks": lacks}
    return _node(name, package, version, *more, **own)


# What those SDKs were made with: newer ones of these fail at import.
OF_THAT_TIME: Final = ("pydantic<2.12", "starlette<0.47", "anyio<4.10")
BEFORE_2: Final = "mcp<2"
FIRST_PAGE: Final = REFUSALS | {"pages"}
OLD: Final = {"http", "structured"}

ALL: Final = (
    _python("openai-agents", "openai-agents", "0.24.0", "mcp==2.3.0"),
    _node("ai-sdk", "@ai-sdk/mcp", "2.0.99", driver="drive_ai_sdk.mjs"),
    _python(
        *("langchain", "langchain-mcp-adapters", "0.3.2"), limits=REFUSALS | {"audio"}
    ),
    _python("llama-index", "llama-index-tools-mcp", "0.6.0", limits={"pages"}),
    _python(
        *("autogen", "autogen-ext[mcp]", "0.7.5"),
        *("autogen-agentchat==0.7.5", "mcp==1.30.0"),
        lacks={"structured"},
        limits=FIRST_PAGE | {"audio", "link"},
    ),
    _python("pydantic-ai", "pydantic-ai-slim[mcp]", "2.68.0"),
    _python_sdk("1.0.0", *OF_THAT_TIME, lacks=OLD, limits=FIRST_PAGE),
    _python_sdk("1.6.0", *OF_THAT_TIME, lacks=OLD, limits=FIRST_PAGE),
    _python_sdk("1.9.4", *OF_THAT_TIME, lacks={"structured"}, limits=REFUSALS),
    _python_sdk("1.13.1", *OF_THAT_TIME, limits=REFUSALS),
    _python_sdk("2.3.0", "httpx2", driver="drive_python_sdk_2.py"),
    _python("fastmcp", "fastmcp", "4.1.2", "mcp==2.3.0", title="FastMCP 4.1.2"),
    _python("mcp-use", "mcp-use", "1.7.1", limits=FIRST_PAGE),
    _python(
        *("google-adk", "google-adk[mcp]", "2.13.0"),
        lacks={"prompts"},
        limits={"pages"},
    ),
    _node(
        *("typescript-client-2.4.0", "@modelcontextprotocol/client", "2.4.0"),
        title="TypeScript client 2.4.0",
        driver="drive_typescript_client.mjs",
    ),
    _typescript_sdk("1.32.2"),
    _typescript_sdk("1.10.2", lacks={"structured"}),
    # On HTTP+SSE it cannot send a header.
    _typescript_sdk("1.0.4", "eventsource@2.0.2", lacks=OLD | {*TOKENS}),
    _python(
        *("smolagents", "smolagents[mcp]", "1.26.0", "mcpadapt==0.1.19", BEFORE_2),
        title="smolagents 1.26.0 (mcpadapt 0.1.19)",
        lacks={*OFFERS},
        limits=FIRST_PAGE | {"audio", "embedded", "link"},
    ),
    _python(
        *("crewai", "crewai-tools[mcp]", "1.15.30", BEFORE_2),
        lacks={*OFFERS, "structured"},
        limits=FIRST_PAGE,
    ),
    _node(
        *("mcp-remote", "mcp-remote", "0.15.1"),
        host="python-sdk-1.13.1",
        lacks={"stdio"},
        limits=REFUSALS,
    ),
    _node(
        "mcporter", "mcporter", "0.12.3", lacks=SESSION | {"prompts"}, limits=REFUSALS
    ),
    _node(
        *("inspector", "@modelcontextprotocol/inspector", "2.12.0"),
        title="inspector CLI 2.12.0",
        lacks=SESSION,
        limits=REFUSALS,
    ),
    _node(
        *("claude-code", "@anthropic-ai/claude-code", "2.1.330"),
        title="Claude Code 2.1.330, `mcp list`",
        lacks=HEALTH_CHECK,
        limits={"missing"},
    ),
    _node(
        *("codex", "@openai/codex", "0.171.0"),
        title="Codex 0.171.0",
        signs_in=True,
        lacks={"sse", "prompts"},
        limits=REFUSALS,
    ),
    _node(
        *("opencode", "opencode-ai", "1.18.33"),
        title="opencode 1.18.33, `mcp list`",
        lacks=HEALTH_CHECK,
        limits=REFUSALS,
    ),
    _node(
        *("gemini-cli", "@google/gemini-cli", "0.61.0"),
        title="Gemini CLI 0.61.0, `mcp list`",
        lacks=HEALTH_CHECK,
        limits=REFUSALS,
    ),
)
BY_NAME: Final = {client.name: client for client in ALL}

AGENTS: Final = (
    replace(BY_NAME["pydantic-ai"], driver="agent_pydantic_ai.py"),
    replace(BY_NAME["openai-agents"], driver="agent_openai_agents.py"),
    _python(
        *("agent-framework", "agent-framework-core", "1.23.0"),
        *("mcp==2.3.0", "tenacity==9.1.4"),
        driver="agent_agent_framework.py",
    ),
    _python(
        *("langchain-agent", "langchain-mcp-adapters", "0.3.2", "langchain==1.5.2"),
        driver="agent_langchain.py",
    ),
)
"""Those with which an agent that follows a script runs in the tests."""
