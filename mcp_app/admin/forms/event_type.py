"""The forms of event types."""

from __future__ import annotations

from mcp_app.admin.forms.definition import DefinitionForm, FormMeta
from mcp_app.admin.page.wording import EVENT_TYPE
from mcp_app.models import EventType


class EventTypeForm(DefinitionForm[EventType]):
    """What the forms of all event types share."""

    WORDS = EVENT_TYPE

    class Meta(FormMeta):
        model = EventType
