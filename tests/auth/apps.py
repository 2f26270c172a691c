"""Programs that a person has let in, without pages: they get their keys and refresh."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final
from uuid import uuid4

from mcp_app.auth import connections, rights
from mcp_app.auth.connections import Client, Grant
from mcp_app.conf import secret_keys
from mcp_app.models import AccessToken, Connection, Server
from mcp_app.protocol.oauth.clients import Registration, client_id_of
from mcp_app.protocol.oauth.requests import CodeGrant, RefreshGrant
from tests.oauth.program import REDIRECT, VERIFIER, challenge_of

_seconds: Final = count(1)


def registered() -> str:
    """Return the id of a program that has registered, of which there is no other."""
    registration = Registration(
        name="Claude",
        redirects=(REDIRECT,),
        grants=("authorization_code", "refresh_token"),
        issued=next(_seconds),
    )
    return client_id_of(registration, secret_keys()[0])


@dataclass
class Program:
    """A program that a person has let in, and what it got; its methods block."""

    server: Server
    user: Any
    client_id: str = field(default_factory=registered)
    access: str = ""
    refresh_token: str = ""
    application: Any = None

    def allowed(self, made_with: Any = None, **changes: Any) -> str:
        client = Client(
            client_id=self.client_id,
            name="Claude",
            host="",
            redirect_uri=REDIRECT,
            redirect_host="claude.ai",
            refreshes=True,
        )
        columns = {"may": "change", "tags": "", "until": None, **changes}
        grant = Grant(
            user=self.user,
            server=self.server,
            client=client,
            challenge=challenge_of(VERIFIER),
            may_ask="change",
            **columns,
        )
        return connections.store_grant(grant, made_with or uuid4())[0]

    def exchange(self, code: str, slug: str | None = None, **changes: Any) -> Any:
        given = {"code": code, "redirect_uri": REDIRECT, "verifier": VERIFIER}
        grant = CodeGrant(resource="", **{**given, **changes})
        return self._took(connections.exchange_code(self.client_id, grant, slug))

    def refresh(self, token: str | None = None) -> Any:
        grant = RefreshGrant(
            refresh_token=self.refresh_token if token is None else token, resource=""
        )
        return self._took(connections.refresh_tokens(self.client_id, grant, None))

    def _took(self, answer: Any) -> Any:
        self.access = answer["access_token"]
        self.refresh_token = answer["refresh_token"]
        return answer

    def sign_in(self, **changes: Any) -> Program:
        self.exchange(self.allowed(**changes))
        return self

    @property
    def row(self) -> Connection:
        return Connection.objects.select_related("token").get(
            client_id=self.client_id, token__revoked=None
        )


def end(token: AccessToken) -> None:
    """End an app as its person does."""
    rights.end_connected_apps([token], lambda _: Connection.Ended.PERSON)
