"""Lists without Django's action for deleting rows: they have their own actions."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from mcp_app.admin.page.unfold import AnyRow, TypedAdmin


class NoBulkDeletion(TypedAdmin[AnyRow]):
    """Removes the action `delete_selected`."""

    def get_actions(
        self, request: HttpRequest, action_location: Any = None
    ) -> dict[str, Any]:
        # Django passes the second argument since 6.1.
        named = {} if action_location is None else {"action_location": action_location}
        actions = super().get_actions(request, **named)
        actions.pop("delete_selected", None)
        return actions
