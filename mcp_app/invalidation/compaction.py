"""Compaction: turns change rows into the numbers of their topics, in any process.

Nothing waits for it, because a change row counts as a change as long as it exists.  A
resource that nobody watches gets no number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from django.db import connections, models, router, transaction

from mcp_app.invalidation import changes
from mcp_app.invalidation.change_reader import NO_DEFINITION, Name
from mcp_app.models import Change, Counter, Subscription, Topic
from mcp_app.models.changes import ANY, many_written
from mcp_app.models.expiry import ExpiredRows, delete_rows
from mcp_app.models.topics import COUNTER, ids_to_text
from mcp_app.models.transactions import (
    NowMilliseconds,
    own_transaction,
    tells_of_commits,
)

BATCH = 5_000
"""Rows that one transaction compacts."""
MOST_IDS = 100
"""With more rows than this, a topic does not list those that raised it."""
FORGOTTEN = 1_000
"""Topics that one transaction deletes while it holds the counter's lock."""
KEPT_MS = 600_000
"""How long a topic is kept that names neither a definition nor a server."""


def compact() -> None:
    """Compact all change rows, unless another process is doing so; blocks."""
    while _compact_some() >= BATCH:
        continue


def connect() -> None:
    """Compact after every thousandth change row: perhaps no other process does it."""
    many_written.connect(_many_written)


def _many_written(using: str, **_: object) -> None:
    # If a site commits by hand, Django calls no `on_commit` function afterwards.
    if tells_of_commits(using):
        transaction.on_commit(compact, using=using, robust=True)


def expired_changes() -> list[ExpiredRows]:
    """Return change rows, which become numbers, and topics with old numbers."""
    return [
        ExpiredRows("changes", Change.objects.count, lambda: _compact_some() or None),
        ExpiredRows(
            "topics",
            lambda: _expired_topics(Topic.objects.all()).count(),
            lambda: prune_topics() or None,
        ),
    ]


def prune_topics() -> int:
    """Delete topics that every process has seen long ago; return how many; blocks."""
    using = router.db_for_write(Topic)
    with own_transaction(using):
        old = _expired_topics(Topic.objects.using(using))
        if not old.exists():
            return 0
        counters = Counter.objects.using(using)
        # This locks the counter, so that no topic gets another number meanwhile.
        counters.draw()
        pairs = list(old.order_by("version").values_list("pk", "version")[:FORGOTTEN])
        delete_rows(using, Topic, [key for key, _version in pairs])
        floor = max((version for _key, version in pairs), default=0)
        counters.filter(name=COUNTER, floor__lt=floor).update(floor=floor)
    return len(pairs)


def _expired_topics(topics: models.QuerySet[Topic]) -> models.QuerySet[Topic]:
    long_ago = NowMilliseconds() - KEPT_MS
    return topics.filter(kind__in=NO_DEFINITION, changed_ms__lt=long_ago)


def _compact_some() -> int:
    using = router.db_for_write(Change)
    with own_transaction(using):
        # Lock before the read: two processes that delete the rows would deadlock.
        if not _lock_counter(using):
            return 0
        rows = list(Change.objects.using(using).order_by("id")[:BATCH])
        if rows:
            number = Counter.objects.using(using).draw()
            ids: dict[Name, list[int]] = defaultdict(list)
            for row in rows:
                ids[row.kind, row.ref].append(row.pk)
            for name in _unwatched_names(using, ids):
                del ids[name]
            _raise_topics(using, number, ids)
            delete_rows(using, Change, [row.pk for row in rows])
        return len(rows)


def _unwatched_names(using: str, names: Iterable[Name]) -> list[Name]:
    """Return the resources that nobody watches; call it after the rows were read."""
    # A client that subscribes later reads a resource with these changes.
    refs = [ref for kind, ref in names if kind == changes.RESOURCE and ref != ANY]
    subscriptions = Subscription.objects.using(using)
    watched: set[str] = set()
    for batch in changes.batches(sorted(refs)):
        watched |= subscriptions.watched(batch)
    return [(changes.RESOURCE, ref) for ref in refs if ref not in watched]


def _lock_counter(using: str) -> bool:
    """Lock the counter; return False if another process is compacting now."""
    features, counters = connections[using].features, Counter.objects.using(using)
    if not features.has_select_for_update:
        return True
    counters.get_or_create(name=COUNTER)
    skip = features.has_select_for_update_skip_locked
    locked = counters.select_for_update(skip_locked=skip).filter(name=COUNTER)
    return locked.first() is not None


def _raise_topics(using: str, number: int, ids: Mapping[Name, list[int]]) -> None:
    """Write the number into the topics; the lock of the counter excludes others."""
    topics = Topic.objects.using(using)
    topics_by_name = {
        (each.kind, each.ref): each
        for batch in changes.batches(sorted({ref for _, ref in ids}))
        for each in topics.filter(ref__in=batch)
    }
    new_topics: list[Topic] = []
    for (kind, ref), row_ids in ids.items():
        folded = ids_to_text(row_ids) if len(row_ids) <= MOST_IDS else ""
        values = {"version": number, "folded": folded, "changed_ms": NowMilliseconds()}
        topic = topics_by_name.get((kind, ref))
        if topic is None:
            new_topics.append(Topic(kind=kind, ref=ref, **values))
        else:
            topics.filter(pk=topic.pk).update(previous=topic.version, **values)
    topics.bulk_create(new_topics)
