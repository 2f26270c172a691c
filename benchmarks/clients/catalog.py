"""The clients that are driven, their versions, and what they themselves lack."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

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
    "restart",
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
    lacks: frozenset[str] = frozenset()
    limits: frozenset[str] = frozenset()

    @property
    def transports(self) -> tuple[str, ...]:
        """Those that it has, the newest first."""
        return tuple(each for each in TRANSPORTS if each not in self.lacks)


def _less(client: Client, *lacks: str, limits: frozenset[str] = frozenset()) -> Client:
    return replace(client, lacks=frozenset(lacks), limits=limits)


def _python_sdk(version: str, *more: str) -> Client:
    return Client(
        name=f"python-sdk-{version}",
        title=f"Python SDK {version}",
        packages=(f"mcp=={version}", *more),
        driver="drive_python_sdk.py",
    )


def _typescript_sdk(version: str, *more: str) -> Client:
    return Client(
        name=f"typescript-sdk-{version}",
        title=f"TypeScript SDK {version}",
        packages=(f"@modelcontextprotocol/sdk@{version}", *more),
        driver="drive_typescript_sdk.mjs",
        kind=NODE,
    )


# What those SDKs were made with: newer ones of these fail at import.
OF_THAT_TIME: Final = ("pydantic<2.12", "starlette<0.47", "anyio<4.10")
BEFORE_2: Final = "mcp<2"

ALL: Final = (
    Client(
        name="openai-agents",
        title="openai-agents 0.24.0",
        packages=("openai-agents==0.24.0", "mcp==2.3.0"),
        driver="drive_openai_agents.py",
    ),
    Client(
        name="ai-sdk",
        title="@ai-sdk/mcp 2.0.99",
        packages=("@ai-sdk/mcp@2.0.99",),
        driver="drive_ai_sdk.mjs",
        kind=NODE,
    ),
    Client(
        name="langchain",
        title="langchain-mcp-adapters 0.3.2",
        packages=("langchain-mcp-adapters==0.3.2",),
        driver="drive_langchain.py",
        limits=REFUSALS | {"audio"},
    ),
    Client(
        name="llama-index",
        title="llama-index-tools-mcp 0.6.0",
        packages=("llama-index-tools-mcp==0.6.0",),
        driver="drive_llama_index.py",
        limits=frozenset({"pages"}),
    ),
    Client(
        name="autogen",
        title="autogen-ext 0.7.5",
        packages=("autogen-ext[mcp]==0.7.5", "autogen-agentchat==0.7.5", "mcp==1.30.0"),
        driver="drive_autogen.py",
        lacks=frozenset({"structured"}),
        limits=REFUSALS | {"pages", "audio", "link"},
    ),
    Client(
        name="pydantic-ai",
        title="pydantic-ai-slim 2.68.0",
        packages=("pydantic-ai-slim[mcp]==2.68.0",),
        driver="drive_pydantic_ai.py",
    ),
    *(
        _less(
            _python_sdk(version, *OF_THAT_TIME),
            *("http", "structured"),
            limits=REFUSALS | {"pages"},
        )
        for version in ("1.0.0", "1.6.0")
    ),
    _less(_python_sdk("1.9.4", *OF_THAT_TIME), "structured", limits=REFUSALS),
    _less(_python_sdk("1.13.1", *OF_THAT_TIME), limits=REFUSALS),
    Client(
        name="python-sdk-2.3.0",
        title="Python SDK 2.3.0",
        packages=("mcp==2.3.0", "httpx2"),
        driver="drive_python_sdk_2.py",
    ),
    Client(
        name="fastmcp",
        title="FastMCP 4.1.2",
        packages=("fastmcp==4.1.2", "mcp==2.3.0"),
        driver="drive_fastmcp.py",
    ),
    Client(
        name="mcp-use",
        title="mcp-use 1.7.1",
        packages=("mcp-use==1.7.1",),
        driver="drive_mcp_use.py",
        limits=REFUSALS | {"pages"},
    ),
    Client(
        name="google-adk",
        title="google-adk 2.13.0",
        packages=("google-adk[mcp]==2.13.0",),
        driver="drive_google_adk.py",
        lacks=frozenset({"prompts"}),
        limits=frozenset({"pages"}),
    ),
    Client(
        name="typescript-client-2.4.0",
        title="TypeScript client 2.4.0",
        packages=("@modelcontextprotocol/client@2.4.0",),
        driver="drive_typescript_client.mjs",
        kind=NODE,
    ),
    _typescript_sdk("1.32.2"),
    _less(_typescript_sdk("1.10.2"), "structured"),
    # On HTTP+SSE it cannot send a header.
    _less(_typescript_sdk("1.0.4", "eventsource@2.0.2"), "http", "structured", *TOKENS),
    Client(
        name="smolagents",
        title="smolagents 1.26.0 (mcpadapt 0.1.19)",
        packages=("smolagents[mcp]==1.26.0", "mcpadapt==0.1.19", BEFORE_2),
        driver="drive_smolagents.py",
        lacks=frozenset(OFFERS),
        limits=REFUSALS | {"pages", "audio", "embedded", "link"},
    ),
    Client(
        name="crewai",
        title="crewai-tools 1.15.30",
        packages=("crewai-tools[mcp]==1.15.30", BEFORE_2),
        driver="drive_crewai.py",
        lacks=frozenset({*OFFERS, "structured"}),
        limits=REFUSALS | {"pages"},
    ),
    Client(
        name="mcp-remote",
        title="mcp-remote 0.15.1",
        packages=("mcp-remote@0.15.1",),
        driver="drive_mcp_remote.py",
        kind=NODE,
        host="python-sdk-1.13.1",
        lacks=frozenset({"stdio"}),
        limits=REFUSALS,
    ),
    Client(
        name="mcporter",
        title="mcporter 0.12.3",
        packages=("mcporter@0.12.3",),
        driver="drive_mcporter.py",
        kind=NODE,
        lacks=SESSION | {"prompts"},
        limits=REFUSALS,
    ),
    Client(
        name="inspector",
        title="inspector CLI 2.12.0",
        packages=("@modelcontextprotocol/inspector@2.12.0",),
        driver="drive_inspector.py",
        kind=NODE,
        lacks=SESSION,
        limits=REFUSALS,
    ),
    Client(
        name="claude-code",
        title="Claude Code 2.1.330, `mcp list`",
        packages=("@anthropic-ai/claude-code@2.1.330",),
        driver="drive_claude_code.py",
        kind=NODE,
        lacks=HEALTH_CHECK,
        limits=frozenset({"missing"}),
    ),
    Client(
        name="gemini-cli",
        title="Gemini CLI 0.61.0, `mcp list`",
        packages=("@google/gemini-cli@0.61.0",),
        driver="drive_gemini_cli.py",
        kind=NODE,
        lacks=HEALTH_CHECK,
        limits=REFUSALS,
    ),
)
BY_NAME: Final = {client.name: client for client in ALL}
