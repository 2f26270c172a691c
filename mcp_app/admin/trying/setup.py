"""The choices of a trial: which version, at which server, as whom, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import Final

from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest, QueryDict
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.admin.editors.schema_fields import Option
from mcp_app.admin.page.rights import has_right
from mcp_app.auth.permissions import holder_by_token
from mcp_app.auth.token_cache import TokenEntry, read_tokens
from mcp_app.auth.users import find_user, no_such_user
from mcp_app.catalog.registry import mcp
from mcp_app.interface.definitions import Definition, Label
from mcp_app.interface.principal import CONSOLE, Principal, Scope
from mcp_app.interface.rules import text_problem, visible
from mcp_app.interface.server import ServerDefinition
from mcp_app.kinds import Effect
from mcp_app.models import AccessToken, DefinitionRow, State
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.revisions import LATEST, REVISIONS, Revision
from mcp_app.protocol.tasks import EXTENSION
from mcp_app.publishing.rights import lacking_sentence
from mcp_app.transports.in_process import Caller
from mcp_app.workbench.trying.attempts import As, Attempt, refusal_of_attempt

CLIENT: Final = "Try it"
DRY_CLIENT: Final = "Try it, dry run"
FETCH: Final = "Fetch"
MAX_TOKENS: Final = 50
CAPABILITIES: Final[Mapping[str, tuple[Label, tuple[str, ...]]]] = {
    "form": (gettext_lazy("answer questions in a form"), ("elicitation", "form")),
    "url": (gettext_lazy("open a page for its user"), ("elicitation", "url")),
    "sampling": (gettext_lazy("ask its model"), ("sampling",)),
    "tools": (gettext_lazy("let its model use tools"), ("sampling", "tools")),
    "roots": (gettext_lazy("tell its folders"), ("roots",)),
}
"""Capabilities of a client: the label, and the path of members that declares each."""
WHO: Final[Mapping[As, Label]] = {
    As.ME: gettext_lazy("Me (%(name)s)"),
    As.TOKEN: gettext_lazy("By a token of mine"),
    As.NOBODY: gettext_lazy("Nobody: without a sign-in"),
    As.USER: gettext_lazy("Another user"),
}


class Refusal(Exception):
    """The choices cannot be tried like this; the message says why."""


@dataclass(frozen=True, repr=False)
class Setup:
    """The choices of the page: those of its form, or the defaults if none was sent."""

    request: HttpRequest
    row: DefinitionRow
    definition: Definition
    """The definition to try."""
    effect: Effect
    servers: Sequence[ServerDefinition]
    is_working_copy: bool
    changes_elsewhere: str | None = None
    """What a call changes at another site; "" for nothing, None if hints decide."""
    data: QueryDict = field(default_factory=QueryDict)
    is_fetch: bool = False
    """Whether this is *Fetch*: a call that only reads needs no right to publish."""

    # -- which, and where -------------------------------------------------------------

    @cached_property
    def chosen_server(self) -> ServerDefinition | None:
        """The chosen server, else the first one; None if none is published."""
        slug = self.data.get("server")
        chosen = (server for server in self.servers if server.slug == slug)
        return next(chain(chosen, self.servers), None)

    @property
    def server_slug(self) -> str:
        return "" if self.chosen_server is None else self.chosen_server.slug

    @property
    def is_public(self) -> bool:
        """Whether the server needs no authentication."""
        return self.chosen_server is not None and self.chosen_server.is_public

    @property
    def server_options(self) -> Iterator[Option]:
        for each in self.servers:
            yield Option(each.slug, visible(each.slug), each.slug == self.server_slug)

    # -- as whom ----------------------------------------------------------------------

    @cached_property
    def who_choice(self) -> As:
        """The chosen kind of caller; always nobody at a public server."""
        if self.is_public:
            return As.NOBODY
        chosen = self.data.get("who", As.ME)
        return As(chosen) if chosen in set(As) else As.ME

    @property
    def who_options(self) -> Iterator[Option]:
        me = visible(_current_user(self.request).get_username())
        for each, label in WHO.items():
            if each is As.USER and not self.may_try_as:
                continue
            if each is As.TOKEN and not self.tokens:
                continue
            yield Option(each, str(label) % {"name": me}, each == self.who_choice)

    @cached_property
    def tokens(self) -> list[AccessToken]:
        """The user's own tokens that are valid now."""
        rows = AccessToken.objects.filter(user_id=_current_user(self.request).pk)
        valid = (row for row in rows if not row.has_ended(now()) and not row.is_app)
        return [*islice(valid, MAX_TOKENS)]

    @property
    def token_options(self) -> Iterator[Option]:
        chosen = self.data.get("token", "")
        for token in self.tokens:
            yield Option(str(token.pk), visible(token.name), str(token.pk) == chosen)

    @property
    def may_try_as(self) -> bool:
        """Whether the user may try as another user."""
        return has_right(self.request, "try_as")

    @property
    def user_name(self) -> str:
        return self.data.get("user", "").strip()

    @cached_property
    def other_user(self) -> AbstractBaseUser | None:
        """The other user; raises `Refusal` if no user has this name."""
        if self.who_choice is not As.USER:
            return None
        if not self.may_try_as:
            # Without the right, a user must not learn which names exist.
            raise Refusal(lacking_sentence("try_as"))
        name = self.user_name
        user = None if text_problem(name) or not name else find_user(name)
        if user is None:
            raise Refusal(no_such_user(name))
        return user

    @property
    def person_name(self) -> str:
        """The name of the user as whom the call is made; "" for nobody."""
        if self.who_choice is As.NOBODY:
            return ""
        # Some databases match names of a different spelling: use the stored name.
        return (self.other_user or _current_user(self.request)).get_username()

    @property
    def chosen_who(self) -> str:
        """As whom the call is to be made, in words; looks up no user."""
        if self.who_choice is As.USER:
            return _("as %(name)s") % {"name": visible(self.user_name)}
        return self.as_whom_text

    @property
    def as_whom_text(self) -> str:
        """As whom the call is made, in words."""
        if self.who_choice is As.NOBODY:
            return _("as nobody")
        text = _("as %(name)s")
        if self.who_choice is As.TOKEN:
            text = _("by an access token of %(name)s")
        return text % {"name": visible(self.person_name)}

    def principal(self) -> Principal:
        """Return the principal of the call; raises `Refusal`."""
        if self.who_choice is As.NOBODY:
            return console_principal(self.request, None)
        user = self.other_user or _current_user(self.request)
        scope = self._token_scope() if self.who_choice is As.TOKEN else None
        return console_principal(self.request, user, scope)

    def _token_scope(self) -> Scope | None:
        """Return the scope of the chosen token; raises `Refusal`."""
        chosen = self.data.get("token", "")
        for row in self.tokens:
            if str(row.pk) == chosen:
                entry: TokenEntry = read_tokens([row.digest])[row.digest]
                if why := entry.refusal_at(self.server_slug):
                    sentence = _("Clients get 401 here: %(why)s") % {"why": why}
                    raise Refusal(sentence)
                return entry.principal.scope
        raise Refusal(_("Choose one of your tokens."))

    # -- how --------------------------------------------------------------------------

    @cached_property
    def chosen_revision(self) -> Revision:
        return REVISIONS.get(self.data.get("revision", ""), LATEST)

    @property
    def revision_options(self) -> Iterator[Option]:
        for version in sorted(REVISIONS, reverse=True):
            newest = version == LATEST.version
            text = _("%(version)s, newest") if newest else "%(version)s"
            chosen = version == self.chosen_revision.version
            yield Option(version, text % {"version": version}, chosen)

    @property
    def capability_options(self) -> Iterator[Option]:
        chosen = self.data.getlist("can") if self.data else [*CAPABILITIES]
        for name, (label, _path) in CAPABILITIES.items():
            yield Option(name, str(label), name in chosen)

    @property
    def capabilities(self) -> JsonObject:
        """The capabilities that the client declares."""
        declared: JsonObject = {}
        for option in self.capability_options:
            inner = declared
            for member in CAPABILITIES[option.value][1] if option.chosen else ():
                inner = inner.setdefault(member, {})
        return {**declared, "extensions": {EXTENSION: {}}} if self.is_task else declared

    @property
    def has_dry_run(self) -> bool:
        """Whether the page offers a dry run."""
        return self.effect is Effect.DATABASE

    @property
    def is_dry(self) -> bool:
        """Whether the changes of the call are to be undone."""
        if not self.has_dry_run:
            return False
        if not self.data:
            # At first, only a published definition that only reads really runs.
            return not (self.only_reads and not self.is_working_copy)
        return "dry" in self.data

    @property
    def is_task(self) -> bool:
        """Whether a button starts a task, or answers a question before its start."""
        return "task" in self.data or {"answer", "was_task"} <= self.data.keys()

    @property
    def only_reads(self) -> bool:
        """Whether the call changes nothing, here or at another site."""
        if self.changes_elsewhere is None:
            return self.definition.only_reads
        # For a call of another site, hints do not count.
        return not self.changes_elsewhere

    @property
    def request_here(self) -> str:
        """The request that a toolset's tool sends to this site: "GET /orders/"."""
        declared = mcp.tools.get(self.definition.name) if self.row.from_code else None
        return visible(getattr(declared and declared.function, "request", ""))

    @property
    def must_confirm(self) -> bool:
        """Whether the user must tick a box to really call another site."""
        return self.effect is Effect.ELSEWHERE and not self.only_reads

    @property
    def confirmation(self) -> str:
        """The text of that box."""
        if not self.changes_elsewhere:
            return _("I want to really call the other site")
        values = {"call": visible(self.changes_elsewhere)}
        return _("I want to really call %(call)s") % values

    def check_server(self) -> None:
        """Raise `Refusal` if no server is published, or no longer the chosen one."""
        if self.chosen_server is None:
            raise Refusal(_("No server is published: nobody could call it."))
        chosen = self.data.get("server", self.server_slug)
        if chosen != self.server_slug:
            message = _("The server “%(slug)s” is not published any more.")
            raise Refusal(message % {"slug": visible(chosen)})

    def check_choices(self) -> None:
        """Raise `Refusal` if these choices are not allowed."""
        # The box names the call, which may have changed since the page was shown.
        if self.must_confirm and self.data.get("really") != self.confirmation:
            raise Refusal(_("Tick the box if you really want to call it."))
        if self.is_task:
            self._check_task()
        request = self.request
        attempt = Attempt(
            who=self.who_choice,
            is_working_copy=self.is_working_copy,
            is_dry=self.is_dry,
            only_reads=self.only_reads,
            effect=self.effect,
            may_publish=(self.is_fetch and self.only_reads)
            or has_right(request, "publish"),
            may_try_as=self.may_try_as,
            is_superuser=bool(getattr(request.user, "is_superuser", False)),
            as_superuser=bool(getattr(self.other_user, "is_superuser", False)),
        )
        if reason := refusal_of_attempt(attempt):
            raise Refusal(reason)

    def _check_task(self) -> None:
        revision = self.chosen_revision
        if not has_right(self.request, "view_task"):
            raise Refusal(_("You may not see tasks, so you cannot start one."))
        if self.is_working_copy:
            raise Refusal(_("A task runs what is published: choose that version."))
        if self.is_dry:
            raise Refusal(_("Untick the dry run: what a task changes stays."))
        if not (revision.task_extension or revision.task_requests):
            raise Refusal(_("This revision has no tasks: choose a newer one."))

    def calling_client(self) -> Caller:
        """Return the client of the call; raises `Refusal`."""
        name = DRY_CLIENT if self.is_dry else CLIENT
        return Caller(
            principal=self.principal(),
            person=f"u{_current_user(self.request).pk}",
            revision=self.chosen_revision,
            name=FETCH if self.is_fetch else name,
            capabilities=self.capabilities,
        )


def console_principal(
    request: HttpRequest, user: AbstractBaseUser | None, scope: Scope | None = None
) -> Principal:
    """Return the principal of a call from the page; `user` is None for nobody.

    Sealed state belongs to the user of the page. `scope` is that of a token.
    """
    page_user = _current_user(request).get_username()
    if user is None:
        return Principal(kind=CONSOLE, client=page_user, permissions=frozenset())
    return Principal(
        kind=CONSOLE,
        client=page_user,
        user_id=str(user.pk),
        user_name=user.get_username(),
        scope=scope,
    )


def lets_in(request: HttpRequest, server: ServerDefinition) -> bool:
    """Return whether a server admits the user of the page.  Blocks."""
    holder = holder_by_token(_current_user(request), server.slug, mcp.rules)
    return not server.demands or holder.meets_demands(server.demands)


def has_unpublished_changes(row: DefinitionRow) -> bool:
    """Return whether the working copy differs from what clients see."""
    return row.state in {State.UNPUBLISHED, State.CHANGED}


def _current_user(request: HttpRequest) -> AbstractBaseUser:
    user = request.user
    if not isinstance(user, AbstractBaseUser):
        raise Refusal(_("Log in first."))
    return user
