"""Webhook subscriptions to events, a row each; there is no row of a delivery.

Every change of a row is one UPDATE that names the state before.  If the row is in
another state by now, nothing changes, and the caller is told so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.db import models, router
from django.utils.translation import gettext_lazy as _

from mcp_app.models.expiry import claim_rows
from mcp_app.models.fields import DigestField, ExactCharField
from mcp_app.models.transactions import NowMilliseconds, own_transaction, persistently

if TYPE_CHECKING:
    from mcp_app.models.tokens import AccessToken

VERIFIED_MS: Final = 24 * 3_600_000
"""How long a receiver that has agreed is not asked again for the same principal."""
OVERLAP_MS: Final = 3_600_000
"""How long deliveries are signed with the old secret, too."""
CHECK_MS: Final = 600_000
"""How often the rights of a quiet subscription are checked."""
LEASE_MS: Final = 30_000
"""Milliseconds after the last write of its worker until another may claim it."""
PER_HOST: Final = 4
"""Subscriptions at one host that all processes together serve at once."""
PER_PERSON: Final = 2
"""One person's subscriptions that one process, or all for one host, serve at once."""
HOUR_MS: Final = 3_600_000
LATE_MS: Final = 120_000
REFRESH: Final = {
    **{"active": True, "failed_since_ms": None, "truncated": False, "ending": False}
}
"""The values of a subscription that its client has just renewed."""
BEGINNING: Final[Mapping[str, Any]] = {
    **{"retries": "[]", "given_up": "[]", "owner": "", "lease_ms": 0, "paced_ms": 0},
    **{"last_ok_ms": None, "last_error": "", "old_secret": "", "old_until_ms": 0},
    **{"sent": 0, "recent": "[]", "by_event": False, "last_status": 0, **REFRESH},
}
"""The values of a subscription before its first delivery."""


class EventSubscriptionQuerySet(models.QuerySet["EventSubscription"]):
    """Rows, and their transitions; each returns whether it changed the row."""

    def living(self) -> EventSubscriptionQuerySet:
        return self.filter(expires_ms__gt=NowMilliseconds())

    def expired(self) -> EventSubscriptionQuerySet:
        return self.exclude(expires_ms__gt=NowMilliseconds())

    def free(self) -> EventSubscriptionQuerySet:
        """Subscriptions that no worker has now, or whose worker's lease has ended."""
        free = models.Q(owner="") | models.Q(lease_ms__lt=NowMilliseconds())
        return self.filter(free)

    def agreements(self, principal: str, url_digest: str) -> EventSubscriptionQuerySet:
        """Subscriptions whose receiver has agreed lately to hear from a principal."""
        rows = self.filter(principal=principal, url_digest=url_digest)
        return rows.filter(verified_ms__gt=NowMilliseconds() - VERIFIED_MS)

    def renew(self, row: EventSubscription, **values: Any) -> bool:
        """Change a row, if nobody has renewed or ended it since it was read."""
        same = models.Q(secret=row.secret, expires_ms=row.expires_ms)
        return self._change(same & models.Q(pk=row.pk), **values)

    def claim(
        self, owner: str, cap: int, busy: Mapping[str, int]
    ) -> list[EventSubscription]:
        """Let a worker serve some subscriptions, the one served longest ago first.

        `busy` says how many its process serves now, by person.
        """
        rows = self.using(router.db_for_write(EventSubscription)).living().free()
        # Usually there are none: to find that out, nothing is locked.
        if not rows.exists():
            return []
        return persistently(partial(rows._claim_locked, owner, cap, busy))

    def _claim_locked(
        self, owner: str, cap: int, busy: Mapping[str, int]
    ) -> list[EventSubscription]:
        all_rows = self.model._base_manager.using(self.db)
        # How many are served for (host, ""), for ("", person), and for (host, person).
        counts = Counter({("", person): count for person, count in busy.items()})
        keys: list[int] = []
        with own_transaction(self.db):
            leased = all_rows.filter(lease_ms__gt=NowMilliseconds()).exclude(owner="")
            for host, person in leased.values_list("host", "person"):
                counts.update([(host, ""), (host, person)])
            rows = claim_rows(self).order_by("lease_ms", "pk")
            for key in filter(partial(_is_full, counts), counts):
                pairs = zip(("host", "person"), key, strict=True)
                rows = rows.exclude(**{name: value for name, value in pairs if value})
            # More than `cap` are read, because some may be beyond a limit.
            due = rows.values_list("pk", "host", "person")[: cap * PER_HOST]
            for pk, host, person in due:
                slots = [(host, ""), ("", person), (host, person)]
                if len(keys) < cap and not any(_is_full(counts, key) for key in slots):
                    keys.append(pk)
                    counts.update(slots)
            claims = all_rows.filter(pk__in=keys)
            claims.update(owner=owner, lease_ms=NowMilliseconds() + LEASE_MS)
        return list(claims.order_by("lease_ms", "pk"))

    def note(self, pk: int, owner: str, /, **values: Any) -> bool:
        """Store how far its worker is, and renew the worker's lease."""
        lease = {"lease_ms": NowMilliseconds() + LEASE_MS}
        return self._change(models.Q(pk=pk, owner=owner), **{**lease, **values})

    def open(self) -> EventSubscriptionQuerySet:
        return self.living().filter(ending=False)

    def failing(self) -> EventSubscriptionQuerySet:
        """Subscriptions whose receiver has failed for an hour."""
        return self.living().filter(failed_since_ms__lt=NowMilliseconds() - HOUR_MS)

    def late(self) -> EventSubscriptionQuerySet:
        """Subscriptions that a worker should have looked at minutes ago."""
        return self.living().filter(due_ms__lt=NowMilliseconds() - LATE_MS)

    def stop(self, pk: int) -> bool:
        """End a subscription: its receiver is told so, and gets nothing else."""
        before = models.Q(pk=pk, ending=False)
        return self._change(before, ending=True, owner="", lease_ms=0, due_ms=0)

    def send_again(self, row: EventSubscription, **values: Any) -> bool:
        """Change a row, if no worker has it, or has delivered since it was read."""
        using = router.db_for_write(EventSubscription)
        rows = self.using(using).open().free().filter(active=True, pk=row.pk)
        rows = rows.filter(retries=row.retries, recent=row.recent)
        values |= {"owner": "", "due_ms": NowMilliseconds()}
        return bool(persistently(partial(rows.update, **values)))

    def end(self, public_id: str) -> bool:
        """Delete a subscription, even if a worker has it."""
        using = router.db_for_write(EventSubscription)
        rows = self.using(using).filter(public_id=public_id)
        return bool(persistently(rows.delete)[0])

    def end_of_tokens(self, using: str, tokens: Iterable[AccessToken]) -> None:
        """Delete the subscriptions of these tokens, in the caller's transaction."""
        keys = [token.principal_key for token in tokens]
        self.using(using).filter(principal__in=keys).delete()

    def _change(self, before: models.Q, **values: Any) -> bool:
        using = router.db_for_write(EventSubscription)
        rows = self.model._base_manager.using(using).filter(before)
        return bool(persistently(partial(rows.update, **values)))


def _is_full(counts: Counter[tuple[str, str]], key: tuple[str, str]) -> bool:
    """Whether the limit for a host, for a person, or for both is reached."""
    _host, person = key
    return counts[key] >= (PER_PERSON if person else PER_HOST)


class EventSubscription(models.Model):
    """Events of a type that are posted to a receiver; times by the database's clock.

    `public_id` is computed of who subscribed, where to, and to what
    (`protocol.webhooks`).  `principal` is the subscriber's key; the limits of `person`
    hold; `caller` is JSON of the subscriber, its client, its dialect and revision.
    `url`, `secret` and `old_secret` are sealed (`streams.event_subscriptions`); until
    `old_until_ms` the old secret signs, too.  Each event up to `position` is posted, or
    stands in `retries`: JSON of [number, attempts, due_ms].  `given_up` is JSON of the
    last numbers that were given up, `recent` of the last deliveries, one for each
    event: `error` is "" once it came.  With `by_event` the id of a message is that of
    its event, because the receiver refused the other one; `last_status` is the last
    HTTP status, 0 for none.  If `truncated`, events were left out since the subscriber
    was last told so.  If `ending`, its receiver is told that it is over, and then the
    row is deleted.  From `due_ms` on a worker has to look at it, even if nothing has
    happened: for a retry, or to check its rights.  `paced_ms` is when the token bucket
    of its rate is full.
    """

    id = models.BigAutoField(primary_key=True)
    public_id = ExactCharField(max_length=64, unique=True)
    server = models.CharField(max_length=64)
    event_type = ExactCharField(max_length=128)
    topic = ExactCharField(max_length=255)
    principal = ExactCharField(max_length=500)
    person = ExactCharField(max_length=500)
    caller = models.TextField()
    arguments = models.TextField()
    url = models.TextField()
    host = models.CharField(max_length=255)
    url_digest = DigestField()
    secret = models.TextField()
    old_secret = models.TextField(blank=True)
    old_until_ms = models.BigIntegerField(default=0)
    verified_ms = models.BigIntegerField(null=True)
    position = models.BigIntegerField()
    retries = models.TextField(default="[]")
    given_up = models.TextField(default="[]")
    recent = models.TextField(default="[]", db_default="[]")
    truncated = models.BooleanField(default=False)
    active = models.BooleanField(default=True)
    ending = models.BooleanField(default=False, db_default=False)
    failed_since_ms = models.BigIntegerField(null=True)
    last_ok_ms = models.BigIntegerField(null=True)
    last_error = models.CharField(max_length=32, blank=True)
    last_status = models.PositiveSmallIntegerField(default=0, db_default=0)
    by_event = models.BooleanField(default=False, db_default=False)
    expires_ms = models.BigIntegerField(db_index=True)
    owner = models.CharField(max_length=32, blank=True)
    lease_ms = models.BigIntegerField(default=0)
    due_ms = models.BigIntegerField(db_index=True)
    paced_ms = models.BigIntegerField(default=0)
    sent = models.BigIntegerField(default=0)
    created_ms = models.BigIntegerField()

    objects = EventSubscriptionQuerySet.as_manager()
    waiting = 0
    """How many events wait; 0 until they are counted."""

    class Meta:
        verbose_name = _("event subscription")
        verbose_name_plural = _("event subscriptions")
        default_permissions = ()
        permissions = [
            ("view_eventsubscription", _("Can see event subscriptions")),
            ("end_eventsubscription", _("Can end event subscriptions")),
        ]
        indexes = [
            models.Index(fields=["topic", "position"], name="mcp_esub_topic"),
            models.Index(fields=["person"], name="mcp_esub_person"),
            models.Index(fields=["principal", "url_digest"], name="mcp_esub_url"),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.host}"
