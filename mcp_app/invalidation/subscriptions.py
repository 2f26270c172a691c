"""The resources that the listen streams of this process watch, a row for each.

Compaction keeps the number of a resource only if somebody watches it.  The rows are
written before a stream is acknowledged, so that no later change is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from django.db import router, transaction

from mcp_app.models import Subscription
from mcp_app.models.fields import digest

AT_ONCE = 500
"""Resources in one statement."""


class ResourceSubscriptions:
    """Counts the streams of a process by URI, and writes the rows.

    Call `begin` and `end` on the loop; call the methods that block in one thread, in
    the order in which they were requested.
    """

    def __init__(self, worker_id: str) -> None:
        self._worker_id = worker_id
        self._streams: Counter[str] = Counter()

    def begin(self, uris: Iterable[str]) -> None:
        """Count one more stream that watches these."""
        self._streams.update(uris)

    def end(self, uris: Iterable[str]) -> list[str]:
        """Count one stream less; return the URIs that no stream watches any more."""
        self._streams.subtract(uris)
        gone = [uri for uri in uris if self._streams[uri] <= 0]
        for uri in gone:
            del self._streams[uri]
        return gone

    def write(self, uris: Iterable[str] | None = None) -> None:
        """Insert the missing rows of these URIs, or of all; blocks."""
        rows = Subscription.objects.using(router.db_for_write(Subscription))
        missing = list(self._streams if uris is None else uris)
        with transaction.atomic(using=rows.db):
            for some in _batches(missing):
                own = rows.of_worker(self._worker_id)
                known = own.watched(digest(uri) for uri in some)
                new = [uri for uri in some if digest(uri) not in known]
                rows.watch(self._worker_id, new)

    def erase(self, uris: Iterable[str]) -> None:
        """Delete the rows of these; blocks."""
        own = Subscription.objects.of_worker(self._worker_id)
        for some in _batches(list(uris)):
            own.filter(uri_digest__in=[digest(each) for each in some]).unwatch()


def _batches(uris: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(uris), AT_ONCE):
        yield uris[start : start + AT_ONCE]
