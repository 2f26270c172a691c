"""Connected apps: what a person allowed a program, and the keys that it was given.

A connected app is a row of `AccessToken`, which says what it may and when it ends.
Here is what that row lacks: which program it is, its code and its refresh token, and
the keys (access tokens of OAuth) that lead to it.
"""

from __future__ import annotations

from typing import Final

from django.db import models
from django.utils.translation import gettext_lazy as _

from mcp_app.models.fields import DigestField, ExactCharField
from mcp_app.models.tokens import AccessToken

CHALLENGE_LENGTH: Final = 43
"""Characters of a challenge of PKCE (RFC 7636, S256)."""


class Connection(models.Model):
    """The program behind an access token, if a person signed it in.

    `client_host` is that of the document by which the program proved who it is, "" for
    one that registered itself.  `code` and `refresh_name` are digests by which rows are
    looked up; `refresh` is the digest of the whole refresh token that is current, and
    `received` whether a key that came with it, or later, was used: then the program has
    it.  `may_ask` is the most that the program asked for.
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

    class Meta:
        app_label = "mcp_app"
        # Its rights are those of its token.
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.token)


class IssuedToken(models.Model):
    """An access token of OAuth: a key to the row of its app, until it expires.

    One that `only_reads` may less than the app: the program asked for less.
    """

    id = models.BigAutoField(primary_key=True)
    digest = DigestField(unique=True)
    token = models.ForeignKey(
        AccessToken, on_delete=models.CASCADE, related_name="issued"
    )
    created = models.DateTimeField()
    expires = models.DateTimeField(db_index=True)
    only_reads = models.BooleanField(default=False)

    class Meta:
        app_label = "mcp_app"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.digest[:12]}…"
