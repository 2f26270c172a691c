"""Who may use the help desk: whoever has its key."""

from __future__ import annotations

import os
from typing import Any, Final

from rest_framework.permissions import BasePermission

HEADER: Final = "X-Desk-Key"


class HasKey(BasePermission):
    def has_permission(self, request: Any, view: Any) -> bool:
        return bool(request.headers.get(HEADER) == os.environ["HELPDESK_KEY"])
