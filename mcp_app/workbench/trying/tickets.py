"""A run that may not happen twice: its page has a ticket, which is good for one run."""

from __future__ import annotations

import secrets
import time
from datetime import datetime
from typing import Final

from django.core import signing

from mcp_app.models import DefinitionRow
from mcp_app.protocol.json_types import JsonObject
from mcp_app.site_time import unix_time
from mcp_app.streams.steps import StoredSteps

SALT: Final = "mcp_app.workbench.trying.trial"
GOOD_FOR_S: Final = 600


class NoTicket(Exception):
    """The ticket is missing, too old, or for another person or definition."""


def new_ticket(user: object, row: DefinitionRow) -> str:
    """Return a new ticket for one run by a user (primary key)."""
    return signing.dumps([*_ticket_holder(user, row), secrets.token_hex(16)], salt=SALT)


def claim_ticket(text: str, user: object, row: DefinitionRow) -> datetime | None:
    """Use a ticket; None if that is the first time, else when it was used.

    If no transaction is open, the use is committed before this returns.
    Raises `NoTicket`.  Blocks.
    """
    try:
        *holder, nonce = signing.loads(text, salt=SALT, max_age=GOOD_FOR_S)
    except (signing.BadSignature, ValueError) as error:
        raise NoTicket from error
    if holder != _ticket_holder(user, row):
        raise NoTicket
    mine: JsonObject = {"run": secrets.token_hex(8), "at": time.time()}
    run = f"{SALT} {nonce}"
    stored: JsonObject = StoredSteps().run_step_once(run, "trial", lambda: mine)
    return None if stored == mine else unix_time(stored["at"])


def _ticket_holder(user: object, row: DefinitionRow) -> list[str]:
    return [str(user), row.kind_of_row, str(row.pk)]
