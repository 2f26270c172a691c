"""What a person is asked: the request as it was checked, the choices, the words."""

from __future__ import annotations

import secrets as random
import time
from dataclasses import asdict, dataclass
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib.auth.models import AbstractBaseUser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.account.rights_choice import RightsChoice
from mcp_app.auth.connections import Client
from mcp_app.conf import secrets
from mcp_app.models import AccessToken
from mcp_app.models.fields import digest
from mcp_app.protocol.oauth.authorization import CHANGE, AuthorizationRequest
from mcp_app.protocol.oauth.redirects import is_on_own_computer
from mcp_app.protocol.sealing import Sealer

LASTS_S: Final = 600
"""A page that is older counts as closed."""
LONGEST: Final = 160 * 1024
"""Of the longest request, twice, each character of which JSON writes as six."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request that was checked, as the page brings it back.

    `query` is that of the request's address, for whoever signs in as somebody else.
    """

    client: Client
    slug: str
    challenge: str
    state: str
    may_ask: str
    query: str
    once: str
    asked_at: int

    @classmethod
    def of(
        cls, request: AuthorizationRequest, client: Client, slug: str, query: str
    ) -> Question:
        may = AccessToken.May
        return cls(
            client=client,
            slug=slug,
            challenge=request.challenge,
            state=request.state,
            may_ask=may.CHANGE if CHANGE in request.scope else may.READ,
            query=query,
            once=random.token_hex(16),
            asked_at=int(time.time()),
        )

    def sealed(self, user: AbstractBaseUser) -> str:
        """Return it as a text that only this user's page can bring back."""
        return _sealer().seal(asdict(self), _bound(user))

    @classmethod
    def opened(cls, text: str, user: AbstractBaseUser) -> Question | None:
        """Return what a page brings back; None if it is another's, or too old."""
        members = _sealer().open(text, _bound(user))
        if members is None or time.time() - members["asked_at"] > LASTS_S:
            return None
        client = Client(**members.pop("client"))
        return cls(client=client, **members)

    def made_with(self, user: AbstractBaseUser) -> UUID:
        """Return the id of the page: sent twice, it allows once."""
        # MariaDB refuses UUIDs without a version.
        return UUID(digest(f"{user.pk} {self.once}")[:32], version=5)


def _sealer() -> Sealer:
    return Sealer(secrets(), "consent", size=LONGEST)


def _bound(user: AbstractBaseUser) -> bytes:
    return str(user.pk).encode()


class ConsentForm(RightsChoice):
    """What the program may, of what it asked for, and until when."""

    sealed = forms.CharField(widget=forms.HiddenInput)
    end_others = forms.BooleanField(
        label=gettext_lazy("End its other connections"), required=False
    )

    def __init__(self, *positional: Any, with_others: bool, **options: Any) -> None:
        super().__init__(*positional, **options)
        if not with_others:
            del self.fields["end_others"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words about a program: what is proved, what it says, where its answer goes.

    `place` is the proved host that the answer goes to, or a program on this computer.
    """

    place: str
    claim: str
    goes_to: str
    warning: str


def words_of(client: Client) -> Words:
    """Return the words about a program, of which a name is only what it says."""
    here = is_on_own_computer(client.redirect_uri)
    place = _("a program on this computer") if here else client.redirect_host
    said = {"name": client.name, "host": client.host}
    if not client.host:
        claim = _("It calls itself “%(name)s”. Nobody has checked that.") % said
    elif here:
        claim = (
            _("It says that it is “%(name)s” of %(host)s. Nobody can check that.")
            % said
        )
    else:
        claim = _("“%(name)s”, says %(host)s") % said
    warning = ""
    if here:
        warning = _(
            "The sign-in code goes to a program on this computer; any program here can"
            " receive it. If you did not just start signing in there, choose Cancel. Do"
            " not send the address that the browser shows afterwards to anybody:"
            " whoever asks for it wants to sign in as you."
        )
    goes_to = client.redirect_host or client.redirect_uri.partition(":")[0] + ":"
    return Words(place=place, claim=claim, goes_to=goes_to, warning=warning)
