"""The API of the help desk; while a file is there, tickets have a reporter."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rest_framework import mixins, serializers, viewsets

from tests.helpdesk.models import Ticket


def _fields() -> list[str]:
    """Return what a ticket has: more since somebody has released a new version."""
    released = Path(os.environ["HELPDESK_RELEASE"]).exists()
    return ["id", "subject", "priority", *(["reporter"] if released else [])]


class TicketSerializer(serializers.ModelSerializer[Ticket]):
    class Meta:
        model = Ticket
        fields = ("id", "subject", "priority", "reporter")

    def get_fields(self) -> Any:
        wanted = _fields()
        return {k: v for k, v in super().get_fields().items() if k in wanted}


class TicketViewSet(
    mixins.CreateModelMixin,
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    viewsets.GenericViewSet[Ticket],
):
    """Tickets of customers."""

    queryset = Ticket._default_manager.all()
    serializer_class = TicketSerializer
