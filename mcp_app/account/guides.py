"""How a client is connected to one server: its steps, and what it is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from django.views.decorators.debug import sensitive_variables

from mcp_app.account.addresses import server_name
from mcp_app.account.client_configs import CLIENTS
from mcp_app.account.client_formats import TOKEN
from mcp_app.models.tokens import Secret

if TYPE_CHECKING:
    from mcp_app.interface.labels import Label


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """What a page says about a client and a server.

    `line`, `text` and `link` are "" if there is none; the first two may contain the
    token, and the last never does.
    """

    key: str
    title: str
    steps: Sequence[str]
    line: Secret
    text: Secret
    place: str
    link: str
    check: str
    month: date
    signs_in: bool


@sensitive_variables()
def guide_of(
    key: str, slug: str, url: str, *, token: str = "", takes_token: bool
) -> Guide:
    """Return how a client is connected to a server at a URL.

    Without a token, texts have a placeholder where one is needed (`takes_token`).
    """
    client, name = CLIENTS[key], server_name(slug)
    shown = (token or TOKEN) if takes_token else ""
    steps = [*client.steps, *(client.token_steps if takes_token else ())]
    line = "" if client.line is None else client.line(name, url, shown)
    link = ""
    if client.link is not None:
        link = client.link(name, url, TOKEN if takes_token else "")

    def filled(said: Label) -> str:
        return str(said) % {"name": name, "place": client.place}

    return Guide(
        key=key,
        title=client.title,
        steps=[filled(each) for each in steps],
        line=Secret(line),
        text=Secret(client.text(name, url, token=shown)),
        place=client.place,
        link=link,
        check=filled(client.check),
        month=client.month,
        signs_in=client.signs_in,
    )
