"""How something is tried: which version, at which server, as whom, how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest, QueryDict
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.admin.page.rights import may
from mcp_app.admin.trying.fields import Option
from mcp_app.auth.permissions import find_user
from mcp_app.auth.token_entries import TokenEntry, read
from mcp_app.interface.definitions import Definition
from mcp_app.interface.labels import Label
from mcp_app.interface.principal import CONSOLE, Principal, Scope
from mcp_app.interface.rules import text_problem, visible
from mcp_app.interface.server import ServerDefinition
from mcp_app.kinds import Effect
from mcp_app.models import AccessToken, DefinitionRow, State
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.revisions import LATEST, REVISIONS, Revision
from mcp_app.transports.in_process import Caller
from mcp_app.workbench.trying.rules import As, Attempt, refusal

CLIENT: Final = "Try it"
DRY_CLIENT: Final = "Try it, dry run"
MOST_TOKENS: Final = 50
CAPABILITIES: Final[Mapping[str, tuple[Label, tuple[str, ...]]]] = {
    "form": (gettext_lazy("answer questions in a form"), ("elicitation", "form")),
    "url": (gettext_lazy("open a page for its user"), ("elicitation", "url")),
    "sampling": (gettext_lazy("ask its model"), ("sampling",)),
    "tools": (gettext_lazy("let its model use tools"), ("sampling", "tools")),
    "roots": (gettext_lazy("tell its folders"), ("roots",)),
}
"""What a client can: the words, and the members of its capabilities."""
WHO: Final[Mapping[As, Label]] = {
    As.ME: gettext_lazy("Me (%(name)s)"),
    As.TOKEN: gettext_lazy("By a token of mine"),
    As.NOBODY: gettext_lazy("Nobody: without a sign-in"),
    As.USER: gettext_lazy("Another user"),
}


@dataclass(frozen=True, slots=True)
class Refused(Exception):
    """The choices cannot be tried like this; the sentence says why."""

    reason: str
    name: str = ""
    """The input that it is about."""


@dataclass(frozen=True)
class Setup:
    """The choices of the page, from its form; without one, what is chosen at first."""

    request: HttpRequest
    row: DefinitionRow
    definition: Definition
    """The one that is tried."""
    effect: Effect
    servers: Sequence[ServerDefinition]
    is_working_copy: bool
    data: QueryDict = field(default_factory=QueryDict)

    # -- which, and where -------------------------------------------------------------

    @cached_property
    def server(self) -> ServerDefinition | None:
        """The chosen server, else the first one; None if none is published."""
        named = [each for each in self.servers if each.slug == self.data.get("server")]
        return next(iter([*named, *self.servers]), None)

    @property
    def slug(self) -> str:
        return "" if self.server is None else self.server.slug

    @property
    def is_public(self) -> bool:
        """Whether the server asks nobody who they are."""
        return self.server is not None and self.server.public

    @property
    def server_options(self) -> Iterator[Option]:
        for each in self.servers:
            yield Option(each.slug, visible(each.slug), each.slug == self.slug)

    # -- as whom ----------------------------------------------------------------------

    @cached_property
    def who(self) -> As:
        """As whom; a public server asks nobody."""
        if self.is_public:
            return As.NOBODY
        chosen = self.data.get("who", As.ME)
        return As(chosen) if chosen in set(As) else As.ME

    @property
    def who_options(self) -> Iterator[Option]:
        me = visible(_me(self.request).get_username())
        for each, label in WHO.items():
            if each is As.USER and not may(self.request, "try_as"):
                continue
            if each is As.TOKEN and not self.tokens:
                continue
            yield Option(each, str(label) % {"name": me}, each == self.who)

    @cached_property
    def tokens(self) -> list[AccessToken]:
        """The user's own tokens that are good now."""
        rows = AccessToken.objects.filter(user_id=_me(self.request).pk)
        good = (each for each in rows if not each.has_ended(now()) and not each.is_app)
        return [*islice(good, MOST_TOKENS)]

    @property
    def token_options(self) -> Iterator[Option]:
        chosen = self.data.get("token", "")
        for each in self.tokens:
            yield Option(str(each.pk), visible(each.name), str(each.pk) == chosen)

    @property
    def user_name(self) -> str:
        return self.data.get("user", "").strip()

    @cached_property
    def other(self) -> AbstractBaseUser | None:
        """The other user; raises `Refused` if there is none of this name."""
        if self.who is not As.USER:
            return None
        name = self.user_name
        found = None if text_problem(name) or not name else find_user(name)
        if found is None:
            field_name = get_user_model().USERNAME_FIELD
            sentence = _("There is no active user whose %(field)s is “%(name)s”.")
            said = sentence % {"field": field_name, "name": visible(name)}
            raise Refused(said, "user")
        return found

    def principal(self) -> Principal:
        """Return who calls; raises `Refused`."""
        presser = _me(self.request)
        shared: dict[str, Any] = {"kind": CONSOLE, "client": presser.get_username()}
        if self.who is As.NOBODY:
            return Principal(**shared, permissions=frozenset())
        user = self.other or presser
        scope = self._scope() if self.who is As.TOKEN else None
        name = user.get_username()
        return Principal(**shared, user_id=str(user.pk), user_name=name, scope=scope)

    def _scope(self) -> Scope | None:
        """Return what the chosen token reaches."""
        chosen = self.data.get("token", "")
        row = next((each for each in self.tokens if str(each.pk) == chosen), None)
        if row is None:
            raise Refused(_("Choose one of your tokens."), "token")
        entry: TokenEntry = read([row.digest])[row.digest]
        if why := entry.refusal_at(self.slug):
            raise Refused(_("Clients get 401 here: %(why)s") % {"why": why}, "token")
        return entry.principal.scope

    # -- how --------------------------------------------------------------------------

    @cached_property
    def revision(self) -> Revision:
        return REVISIONS.get(self.data.get("revision", ""), LATEST)

    @property
    def revision_options(self) -> Iterator[Option]:
        for version in sorted(REVISIONS, reverse=True):
            newest = version == LATEST.version
            text = _("%(version)s, newest") if newest else "%(version)s"
            chosen = version == self.revision.version
            yield Option(version, text % {"version": version}, chosen)

    @property
    def capability_options(self) -> Iterator[Option]:
        chosen = self.data.getlist("can") if self.data else [*CAPABILITIES]
        for name, (label, _path) in CAPABILITIES.items():
            yield Option(name, str(label), name in chosen)

    @property
    def capabilities(self) -> JsonObject:
        """What the client says that it can."""
        declared: JsonObject = {}
        for each in self.capability_options:
            inner = declared
            for member in CAPABILITIES[each.value][1] if each.chosen else ():
                inner = inner.setdefault(member, {})
        return declared

    @property
    def has_dry_run(self) -> bool:
        """Whether the page offers a dry run."""
        return self.effect is Effect.DATABASE

    @property
    def is_dry(self) -> bool:
        """Whether what it changes is to be undone."""
        if not self.has_dry_run:
            return False
        if not self.data:
            return not (self.definition.only_reads and not self.is_working_copy)
        return "dry" in self.data

    @property
    def must_confirm(self) -> bool:
        """Whether a box says that another site is really called."""
        return self.effect is Effect.ELSEWHERE and not self.definition.only_reads

    def check_server(self) -> None:
        """Raise `Refused` if there is no server to ask."""
        if self.server is None:
            raise Refused(_("No server is published: nobody could call it."))

    def check(self) -> None:
        """Raise `Refused` unless it may be tried like this."""
        if self.must_confirm and "really" not in self.data:
            raise Refused(_("Tick the box if you really want to call it."), "really")
        if said := refusal(self._attempt()):
            raise Refused(said)

    def _attempt(self) -> Attempt:
        request = self.request
        return Attempt(
            who=self.who,
            is_working_copy=self.is_working_copy,
            is_dry=self.is_dry,
            only_reads=self.definition.only_reads,
            effect=self.effect,
            may_publish=may(request, "publish"),
            may_try_as=may(request, "try_as"),
            is_superuser=bool(getattr(request.user, "is_superuser", False)),
            as_superuser=bool(getattr(self.other, "is_superuser", False)),
        )

    def caller(self) -> Caller:
        """Return the client that calls; raises `Refused`."""
        return Caller(
            principal=self.principal(),
            person=f"u{_me(self.request).pk}",
            revision=self.revision,
            name=DRY_CLIENT if self.is_dry else CLIENT,
            capabilities=self.capabilities,
        )


def differs(row: DefinitionRow) -> bool:
    """Return whether the working copy is not what clients see."""
    return row.published is None or row.state == State.CHANGED


def _me(request: HttpRequest) -> AbstractBaseUser:
    user = request.user
    if not isinstance(user, AbstractBaseUser):
        raise Refused(_("Log in first."))
    return user
