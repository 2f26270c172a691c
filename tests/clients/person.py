"""Who sits behind a Python client: answers its questions, remembers what it heard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import mcp_types
from pydantic import BaseModel, FileUrl

if TYPE_CHECKING:
    from mcp_app.protocol.json_types import JsonObject

Action: TypeAlias = Literal["accept", "decline", "cancel"]
Form: TypeAlias = dict[str, str | int | float | bool | list[str] | None]

PATIENCE_S = 60

MODEL_SAYS = "This is a test response from the client"
ROOT = "file:///test/root"


def wire(model: BaseModel) -> JsonObject:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def answer(**form: str | int) -> mcp_types.ElicitResult:
    return mcp_types.ElicitResult(action="accept", content=dict(form))


def reaction(action: Action) -> mcp_types.ElicitResult:
    """Return what a person sends who fills in nothing, and may agree all the same."""
    return mcp_types.ElicitResult(action=action)


@dataclass
class Person:
    """Gives the answers one by one; keeps questions, log messages and notifications."""

    answers: list[mcp_types.ElicitResult] = field(default_factory=list)
    asked: list[mcp_types.ElicitRequestParams] = field(default_factory=list)
    sampled: list[mcp_types.CreateMessageRequestParams] = field(default_factory=list)
    logged: list[tuple[str, object]] = field(default_factory=list)
    progressed: list[tuple[float, float | None]] = field(default_factory=list)
    notified: list[mcp_types.ServerNotification] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)

    async def elicit(
        self, context: object, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult:
        self.asked.append(params)
        return self.answers.pop(0)

    async def sample(
        self, context: object, params: mcp_types.CreateMessageRequestParams
    ) -> mcp_types.CreateMessageResult:
        self.sampled.append(params)
        return mcp_types.CreateMessageResult(
            role="assistant",
            content=mcp_types.TextContent(text=MODEL_SAYS),
            model="test-model",
            stop_reason="endTurn",
        )

    async def list_roots(self, context: object) -> mcp_types.ListRootsResult:
        root = mcp_types.Root(uri=FileUrl(ROOT), name="Test Root")
        return mcp_types.ListRootsResult(roots=[root])

    async def log(self, params: mcp_types.LoggingMessageNotificationParams) -> None:
        self.logged.append((params.level, params.data))

    async def progress(
        self, progress: float, total: float | None, message: str | None
    ) -> None:
        self.progressed.append((progress, total))

    async def hear(self, message: mcp_types.ServerNotification | Exception) -> None:
        if isinstance(message, Exception):
            self.faults.append(message)
        else:
            self.notified.append(message)

    def completed(self) -> list[str]:
        return [
            notification.params.elicitation_id
            for notification in self.notified
            if isinstance(notification, mcp_types.ElicitCompleteNotification)
        ]

    def heard(self, method: str, uri: str | None = None) -> bool:
        return any(
            notification.method == method
            and getattr(notification.params, "uri", None) == uri
            for notification in self.notified
        )


async def eventually(condition: Callable[[], bool]) -> None:
    """Return as soon as the condition holds; a client hears in its own time."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.02)
