"""Access tokens: each lets one program in as a user, and is never stored itself."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final, TypeAlias
from uuid import UUID

from django.conf import settings
from django.core.validators import MinLengthValidator
from django.db import IntegrityError, models, router, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from mcp_app.interface.principal import ACCESS_TOKEN, Principal
from mcp_app.interface.rules import name_problem, visible
from mcp_app.models.changes import RecordedRows
from mcp_app.models.fields import (
    CheckedRow,
    DigestField,
    ExactCharField,
    digest,
    split_words,
    tag_problems,
)
from mcp_app.models.server import Server
from mcp_app.models.transactions import persistently, slices

RIGHTS: Final = "rights"
"""The kind of a change of what a user, or the bearer of a token, may."""
BEGINNING: Final = "mcp_"
"""A token begins with this: programs that look for leaked secrets recognise it."""
SECRET_BYTES: Final = 32
APP: Final = "app_"
"""The `prefix` of a connected app begins with this: so it is recognised."""
PROGRAM: Final = "key_"
"""The client id of a program with a key of its own begins with this."""
OFFER: Final = "link_"
"""The code of a link begins with this; a program that shows it is never let in."""
OFFER_AGE: Final = timedelta(hours=24)
HANDLE_BYTES: Final = 4
VISIBLE_LENGTH: Final = len(BEGINNING) + 6

MAPPED: Final = IPv6Network("::ffff:0:0/96")
"""The IPv6 network of the IPv4-mapped addresses."""
USED_EACH: Final = timedelta(minutes=1)
"""A use is not written if another one was written less than this time before."""
TOKEN_BATCH_SIZE: Final = 500
PRIVATE: Final = frozenset({"name", "used"})
"""Columns that do not affect who is let in: their changes are not recorded."""

Network: TypeAlias = IPv4Network | IPv6Network


SOON: Final = timedelta(days=7)


def ends_soon(now: datetime) -> models.Q:
    """Select what ends within a week and was made for longer than a week."""
    for_long = models.Q(expires__gt=models.F("created") + SOON)
    return for_long & models.Q(expires__lte=now + SOON)


class Secret(str):
    """A text that lets its bearer in; error pages do not show its value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<a secret>"


class AccessTokenRows(RecordedRows["AccessToken"]):
    _change_kind = RIGHTS
    _private_columns = PRIVATE

    def of(self, token: str) -> AccessTokenRows:
        return self.filter(digest=digest(token))

    def of_families(self, families: Sequence[str]) -> Iterator[AccessToken]:
        for batch in slices(families, TOKEN_BATCH_SIZE):
            yield from self.filter(family__in=batch).order_by("pk")

    @sensitive_variables("token")
    def make(self, **columns: Any) -> tuple[AccessToken, Secret]:
        """Store a new token; return its row and the token, which is stored nowhere.

        The token is good at these `servers` (rows); without any, it is good everywhere.
        With a `maker` the row is an offer: its code is returned instead (see `take`).
        With a `public_key` nobody gets the token: "" is returned.
        Raises `ValidationError`, or `IntegrityError` if the page was sent before.
        """
        servers = columns.pop("servers", ())
        columns.setdefault("everywhere", not servers)
        beginning = BEGINNING
        if columns.get("maker"):
            beginning, columns["good_until"] = OFFER, columns.get("expires")
            columns["expires"] = timezone.now() + OFFER_AGE
        token = Secret(f"{beginning}{secrets.token_urlsafe(SECRET_BYTES)}")
        if columns.get("public_key"):
            client_id = f"{PROGRAM}{secrets.token_hex(HANDLE_BYTES)}"
            return self._store_row(token, client_id, servers, columns), Secret()
        return self._store_row(token, token[:VISIBLE_LENGTH], servers, columns), token

    @sensitive_variables("token")
    def take(self, offer: AccessToken) -> Secret | None:
        """Make the token of an offer; None if the offer has ended or was taken."""
        token = Secret(f"{BEGINNING}{secrets.token_urlsafe(SECRET_BYTES)}")
        rows, now = self.filter(pk=offer.pk, digest=offer.digest), timezone.now()
        rows = rows.filter(revoked=None)
        count = models.QuerySet.update(
            rows.filter(expires__gt=now).exclude(good_until__lte=now),
            **{"digest": digest(token), "prefix": token[:VISIBLE_LENGTH]},
            **{"maker": None, "expires": models.F("good_until")},
        )
        return token if count else None

    def make_app(self, server: Server, **columns: Any) -> AccessToken:
        """Store the row of a connected app; only keys issued to the app lead to it.

        Its digest is that of a random token, which nobody gets.  Raises as `make` does.
        """
        handle = f"{APP}{secrets.token_hex(HANDLE_BYTES)}"
        token = secrets.token_urlsafe(SECRET_BYTES)
        return self._store_row(token, handle, [server], columns | {"everywhere": False})

    @sensitive_variables("token")
    def _store_row(
        self,
        token: str,
        prefix: str,
        servers: Iterable[Server],
        columns: Mapping[str, Any],
    ) -> AccessToken:
        values = {"family": secrets.token_hex(16), **columns}
        row = AccessToken(digest=digest(token), prefix=prefix, **values)
        # Unique values are random, except `made_with`: if a page is sent twice, saving
        # raises `IntegrityError`.
        row.full_clean(validate_unique=False)
        with transaction.atomic(using=self._write_alias(), savepoint=False):
            row.save(using=self.db)
            # `set` would record that all rights changed, but nobody has this token yet.
            links = AccessToken.servers.through.objects.using(self.db)
            links.bulk_create(
                [links.model(accesstoken=row, server=server) for server in servers]
            )
        return row

    def move_end(self, key: int, end: datetime) -> None:
        """Let a token end later or earlier; no change is recorded."""
        models.QuerySet.update(self.filter(pk=key), expires=end)

    def note_ends(self, keys: Iterable[int], now: datetime) -> None:
        models.QuerySet.update(self.filter(pk__in=keys), revoked=now)

    def note_uses(self, keys: Iterable[int], now: datetime) -> None:
        """Store when tokens were used, to the minute; no change is recorded."""
        old = models.Q(used=None) | models.Q(used__lt=now - USED_EACH)
        for batch in slices(sorted(keys), TOKEN_BATCH_SIZE):
            persistently(partial(self.filter(old, pk__in=batch).update, used=now))


class AccessToken(CheckedRow):
    """What one program shows to be let in as `user`, no further than this row allows.

    `prefix` is how the token begins, `digest` is that of the whole token.  Tokens that
    replace one another are a `family`: a session goes on when the next one is used.  A
    token is good `everywhere` or at `servers`; if these are deleted, it is good
    nowhere.  It is good only from its `networks` (CIDR form, with spaces between), and
    only for what has one of its `tags`, or for its `tools` (names, with spaces
    between).  Empty columns limit nothing.

    With a `public_key` (a JWK) it has no secret: `prefix` is its program's client id.

    `made_with` is the id of the page that made it: a page sent twice makes one token.
    With a `maker` it is an offer, which lets nobody in, and `digest` is that of a
    link's code.  By this code its user takes it: then it is a token until `good_until`.
    """

    PRIVATE = PRIVATE
    ONE_LINE = ("name",)
    MANY_LINES = ()

    class May(models.TextChoices):
        READ = "read", _("Read")
        CHANGE = "change", _("Read and change")

    name = models.CharField(_("name"), max_length=100)
    prefix = ExactCharField(max_length=16, db_index=True, editable=False)
    digest = DigestField(unique=True, editable=False)
    public_key = models.TextField(blank=True, default="", db_default="")
    family = ExactCharField(
        max_length=32,
        db_index=True,
        editable=False,
        validators=[MinLengthValidator(16)],
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="+",
        verbose_name=_("user"),
    )
    may = models.CharField(
        _("may"), max_length=8, choices=May.choices, default=May.READ
    )
    tags = models.CharField(_("tags"), max_length=500, blank=True)
    tools = models.CharField(
        _("only these tools"), max_length=2000, blank=True, default="", db_default=""
    )
    everywhere = models.BooleanField(_("everywhere"), default=True)
    servers = models.ManyToManyField(
        Server, blank=True, related_name="+", verbose_name=_("servers")
    )
    networks = models.CharField(_("networks"), max_length=500, blank=True)
    created = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    expires = models.DateTimeField(_("expires"), null=True, blank=True)
    revoked = models.DateTimeField(_("revoked"), null=True, blank=True, editable=False)
    used = models.DateTimeField(_("last used"), null=True, blank=True, editable=False)
    made_with = models.UUIDField(unique=True, null=True, blank=True, editable=False)
    maker = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        editable=False,
        related_name="+",
    )
    good_until = models.DateTimeField(null=True, editable=False)

    objects = AccessTokenRows.as_manager()

    class Meta:
        ordering = ["-created", "-pk"]
        verbose_name = _("access token")
        verbose_name_plural = _("access tokens")
        # People manage their own tokens without a right.
        default_permissions = ()
        permissions = [("manage_tokens", _("Can manage everyone's access tokens"))]

    def __str__(self) -> str:
        return f"{visible(self.name)} ({self.handle})"

    def save(self, *args: Any, **options: Any) -> None:
        """Save the row and its change in one transaction.

        After a revocation it returns when every process knows of it.
        """
        using = options.get("using") or router.db_for_write(type(self), instance=self)
        with transaction.atomic(using=using, savepoint=False):
            super().save(*args, **options)

    @property
    def is_app(self) -> bool:
        return self.prefix.startswith(APP)

    @property
    def handle(self) -> str:
        """The id of an app or a program; else how the token begins."""
        is_id = self.prefix.startswith((APP, PROGRAM))
        return self.prefix if is_id else f"{self.prefix}…"

    @property
    def tool_names(self) -> frozenset[str]:
        return frozenset(split_words(self.tools))

    @property
    def tag_names(self) -> frozenset[str]:
        return frozenset(split_words(self.tags))

    def network_list(self) -> tuple[Network, ...]:
        return tuple(map(ip_network, split_words(self.networks)))

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from super().problems()
        yield from tag_problems(self.tags)
        for problem in filter(None, map(name_problem, split_words(self.tools))):
            yield "tools", problem
        for name in ("tags", "tools", "networks"):
            value = getattr(self, name)
            if value and not split_words(value):
                sentence = (
                    f"“{visible(value)}” has no entry. Leave the field empty for no"
                    " limit."
                )
                yield name, sentence
        for each in split_words(self.networks):
            try:
                network = ip_network(each)
            except ValueError:
                yield (
                    "networks",
                    f"“{visible(each)}” is not a network. Write it as 192.0.2.0/24,"
                    " 2001:db8::/32 or as one address, without bits after the prefix.",
                )
            else:
                if network.version == MAPPED.version and network.subnet_of(MAPPED):
                    yield (
                        "networks",
                        f"“{visible(each)}” is an IPv4 network in IPv6 form, which"
                        " never matches. Write it as 192.0.2.0/24.",
                    )

    def has_ended(self, now: datetime) -> bool:
        has_expired = self.expires is not None and self.expires <= now
        return has_expired or self.revoked is not None

    @property
    def principal_key(self) -> str:
        """The principal's key, the same for all tokens of a family."""
        user = str(self.user_id)
        return Principal(kind=ACCESS_TOKEN, user_id=user, client=self.family).key

    def revoke(self) -> None:
        """Let nobody in by it any more; the time of an earlier revocation stays."""
        if self.revoked is None:
            self.revoked = timezone.now()
            self.save(update_fields=["revoked"])

    @sensitive_variables("made")
    def replace(
        self, overlap: timedelta, *, made_with: UUID | None = None
    ) -> tuple[AccessToken, Secret]:
        """Make the next token of the family; this one ends when `overlap` is over.

        The new token has the rights of this one, and the end that this one had.
        Raises `ValueError` if this one has ended, or is a connected app.
        """
        if self.is_app:
            raise ValueError(f"{self} is a connected app. Sign in again instead.")
        rows = AccessToken.objects.using(self._state.db)
        with transaction.atomic(using=self._state.db):
            # Somebody may revoke or narrow it at the same moment.
            rows.select_for_update().get(pk=self.pk)
            self.refresh_from_db()
            now = timezone.now()
            if self.has_ended(now):
                raise ValueError(f"The token {self} has ended. Make a new one.")
            made = rows.make(
                name=self.name,
                family=self.family,
                user=self.user,
                may=self.may,
                tags=self.tags,
                tools=self.tools,
                networks=self.networks,
                expires=self.expires,
                everywhere=self.everywhere,
                servers=self.servers.all(),
                made_with=made_with,
            )
            end = now + overlap
            if self.expires is None or end < self.expires:
                self.expires = end
                self.save(update_fields=["expires"])
        return made


# -- connections -----------------------------------------------------------------------
# Connected apps: what a person allowed a program, and the keys that it was given.
#
# A connected app is a row of `AccessToken`, which says what it may and when it ends.
# These models have what that row lacks: which program it is, its code and its refresh
# token, and the keys (access tokens of OAuth) that lead to it.

CHALLENGE_LENGTH: Final = 43
"""Characters of a challenge of PKCE (RFC 7636, S256)."""


class Connection(models.Model):
    """The program behind an access token, if a person signed it in.

    `client_host` is the host of the document by which the program proved who it is, ""
    if it registered itself.  `code` and `refresh_name` are digests by which rows are
    looked up; `refresh` is the digest of the whole current refresh token.  `received`
    says that the program has that token, because a key that came with it, or later, was
    used.  `may_ask` is the most that the program asked for.
    If a company let the program in, `issuer` is its entry's name in the settings.
    """

    class Ended(models.TextChoices):
        CODE = "code", _("Its sign-in was used twice.")
        REFRESH = "refresh", _("An old key of it was used again.")
        CLIENT = "client", _("The program ended it.")
        PERSON = "person", _("Its owner ended it.")
        STAFF = "staff", _("Staff ended it.")

    token = models.OneToOneField(
        AccessToken,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="connection",
    )
    client_id = models.TextField()
    client_host = ExactCharField(max_length=500, blank=True)
    redirect_uri = models.TextField()
    redirect_host = ExactCharField(max_length=500, blank=True)
    code = DigestField(unique=True)
    code_ends = models.DateTimeField()
    code_used = models.BooleanField(default=False)
    challenge = ExactCharField(max_length=CHALLENGE_LENGTH)
    refreshes = models.BooleanField(default=True)
    refresh_name = DigestField(blank=True, db_index=True)
    refresh = DigestField(blank=True)
    refreshed = models.DateTimeField(null=True)
    received = models.BooleanField(default=False)
    may_ask = models.CharField(max_length=8, choices=AccessToken.May.choices)
    until = models.DateTimeField(null=True)
    ended = models.CharField(max_length=8, choices=Ended.choices, blank=True)
    issuer = ExactCharField(max_length=40, blank=True, default="", db_default="")

    class Meta:
        # Its rights are those of its token.
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.token)


class IssuedToken(models.Model):
    """An access token of OAuth: a key to the row of its app, until it expires.

    If it `only_reads`, the program asked for less than the app may.
    """

    id = models.BigAutoField(primary_key=True)
    digest = DigestField(unique=True)
    token = models.ForeignKey(
        AccessToken, on_delete=models.CASCADE, related_name="issued"
    )
    created = models.DateTimeField()
    expires = models.DateTimeField(db_index=True)
    only_reads = models.BooleanField(default=False, db_default=False)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.digest[:12]}…"


class UsedAssertion(models.Model):
    """An assertion whose id (`jti`) was used, until it `expires` (RFC 7523 §3)."""

    digest = DigestField(primary_key=True)
    expires = models.DateTimeField(db_index=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.digest[:12]}…"

    @classmethod
    def note_use(cls, issuer: str, jti: str, expires: datetime, using: str) -> bool:
        """Note a `jti` in the caller's transaction; return False if it was used."""
        row = cls(digest=digest(f"{issuer}\n{jti}"), expires=expires)
        try:
            with transaction.atomic(using=using):
                row.save(using=using, force_insert=True)
        except IntegrityError:
            return False
        return True
