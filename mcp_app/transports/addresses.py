"""The endpoint with all that is served below its address."""

from __future__ import annotations

from typing import Final

from mcp_app.interface.server import MESSAGES_PART, SSE_PART
from mcp_app.transports.http.handler import Endpoint, Visit
from mcp_app.transports.http_sse.sse_handler import MessagesVisit, StreamVisit

endpoint: Final = Endpoint(
    {"": Visit, SSE_PART: StreamVisit, MESSAGES_PART: MessagesVisit}
)
