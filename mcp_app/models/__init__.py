"""Rows with their querysets; saving a definition inserts its change row."""

from __future__ import annotations

from mcp_app.models.blobs import Blob
from mcp_app.models.calls import Call, CallStatistic, CallWriter
from mcp_app.models.changes import Change
from mcp_app.models.definitions import (
    DefinitionRow,
    EventType,
    Prompt,
    Resource,
    ResourceTemplate,
    Tool,
)
from mcp_app.models.event_subscriptions import EventSubscription
from mcp_app.models.examples import Example
from mcp_app.models.occurrences import Occurrence
from mcp_app.models.once import Once
from mcp_app.models.openapi import ImportedOperation, OpenApiDocument
from mcp_app.models.questions import Question
from mcp_app.models.server import Server
from mcp_app.models.sessions import Session, Subscription
from mcp_app.models.stops import Stop
from mcp_app.models.streams import Event, LoggedMessage, Stream
from mcp_app.models.tasks import Task
from mcp_app.models.tokens import AccessToken, Connection, IssuedToken, UsedAssertion
from mcp_app.models.topics import Counter, Topic
from mcp_app.models.versions import DefinitionVersion, PublishedRow, State
from mcp_app.models.workers import Worker

__all__ = [
    "AccessToken",
    "Blob",
    "Call",
    "CallStatistic",
    "CallWriter",
    "Change",
    "Connection",
    "Counter",
    "DefinitionRow",
    "DefinitionVersion",
    "Event",
    "EventSubscription",
    "EventType",
    "Example",
    "ImportedOperation",
    "IssuedToken",
    "LoggedMessage",
    "Occurrence",
    "Once",
    "OpenApiDocument",
    "Prompt",
    "PublishedRow",
    "Question",
    "Resource",
    "ResourceTemplate",
    "Server",
    "Session",
    "State",
    "Stop",
    "Stream",
    "Subscription",
    "Task",
    "Tool",
    "Topic",
    "UsedAssertion",
    "Worker",
]
