"""Test tools, resources and prompts in a test's own thread and transaction.

from mcp_app.test import Client

client = Client(user, answers={"Really send?": {"sure": True}})
assert client.call("order_send", number="A-1").data == "A-1 was sent."
"""

from __future__ import annotations

from mcp_app.interface.questions import Cancelled, Declined
from mcp_app.test.client import Client
from mcp_app.test.results import Refused, Result, ToolFailed, Unanswered

__all__ = [
    "Cancelled",
    "Client",
    "Declined",
    "Refused",
    "Result",
    "ToolFailed",
    "Unanswered",
]
