"""The rows here that a bundle names: read in few queries, however many there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Count, Q, Value

from mcp_app.models import DefinitionRow, PublishedRow, Server
from mcp_app.models.definitions import NOTHING, Source
from mcp_app.models.fields import digest
from mcp_app.models.transactions import slices
from mcp_app.models.versions import PublishedRows
from mcp_app.publishing.bundle.candidates import (
    chosen_in,
    natural_choice,
    primary_keys_in,
)
from mcp_app.publishing.bundle.format import (
    CHOICES,
    DEFINITIONS,
    LISTS,
    Bundle,
    Entry,
    Identity,
    key_column,
    kind_of_model,
    natural_key_of,
)
from mcp_app.publishing.bundle.writing import says_nothing

AT_ONCE = 400
"""Values that one statement names."""
TOGETHER = 3
"""Conditions of one statement."""


class SiteRows:
    """The rows that a bundle names, and those that have their published names.

    With `lock` they stay as they are until the transaction ends.
    """

    def __init__(self, bundle: Bundle, *, lock: bool = False) -> None:
        self._lock = lock
        self.rows: dict[Identity, PublishedRow] = {}
        self.keys: dict[str, dict[int, str]] = defaultdict(dict)
        """By kind: the natural keys of chosen rows, by primary keys."""
        self._chosen: dict[int, dict[str, list[int]]] = {}
        """What the working copies of servers choose, by their primary key and list."""
        self._published: dict[Identity, DefinitionRow] = {}
        self._wanted: dict[str, set[str]] = defaultdict(set)
        self._identities: dict[str, set[str]] = defaultdict(set)
        for entry in bundle.entries:
            self._want_entry(entry)
        self._load_servers()
        for model in DEFINITIONS.values():
            self._load_definitions(model)

    def published_as(self, kind: str, identity: str) -> DefinitionRow | None:
        """Return the row that clients see under a name or URI."""
        return self._published.get((kind, DefinitionRow.identity_hash(identity)))

    def choice_of_row(self, row: PublishedRow) -> Mapping[str, list[str]]:
        """Return what the working copy of a server chooses, list by list."""
        chosen = self._chosen.get(row.pk, {}) if isinstance(row, Server) else {}
        return dict(natural_choice(chosen, self.keys))

    def only_here(self, bundle: Bundle) -> int:
        """Return how many rows the bundle does not name."""
        rows = [self.rows.get(entry.identity) for entry in bundle.entries]
        rows_here = sum(row is not None and not says_nothing(row) for row in rows)
        untouched = {"source": Source.CODE, "published": None, "content_hash": NOTHING}
        counts: list[Any] = []
        for model in LISTS.values():
            rows_of_model: Any = model.rows().order_by()
            if issubclass(model, DefinitionRow):
                rows_of_model = rows_of_model.exclude(**untouched)
            # Grouped by a constant, a count is a query that can be united with others.
            one = rows_of_model.annotate(one=Value(1)).values("one")
            counted = one.annotate(count=Count("pk"))
            counts.append(counted.values_list("count", flat=True))
        return int(sum(counts[0].union(*counts[1:], all=True).order_by())) - rows_here

    # -- loading ----------------------------------------------------------------------

    def _want_entry(self, entry: Entry) -> None:
        self._wanted[entry.kind].add(entry.key)
        for content in entry.all_contents():
            for kind, key in chosen_in(content):
                self._wanted[kind].add(key)
            if (identity := content.get(key_column(entry.model))) is not None:
                self._identities[entry.kind].add(DefinitionRow.identity_hash(identity))

    def _load_servers(self) -> None:
        slugs = sorted(self._wanted[kind_of_model(Server)])
        servers = self._matching_rows(
            Server.rows(), [Q(slug__in=batch) for batch in slices(slugs, AT_ONCE)]
        )
        choosing: list[int] = []
        for server in servers:
            self.rows[kind_of_model(Server), server.slug] = server
            for kind, keys in primary_keys_in(server.published_content()).items():
                # "" stands for a natural key until `_load_definitions` finds it.
                self.keys[kind].update(dict.fromkeys(keys, ""))
            if server.selection == Server.Selection.CHOSEN:
                choosing.append(server.pk)
        self._load_choices(choosing)

    def _load_choices(self, servers: Sequence[int]) -> None:
        """Note the choices of servers: one statement for all lists, without texts.

        Databases refuse to unite texts that they compare differently.
        """
        if not servers:
            return
        names = list(CHOICES)
        lists = [
            Server.rows()
            .filter(pk__in=servers, **{f"{name}__isnull": False})
            .order_by()
            .annotate(index=Value(index))
            .values_list("pk", "index", name)
            for index, name in enumerate(names)
        ]
        for pk, index, chosen in lists[0].union(*lists[1:], all=True).order_by():
            name = names[index]
            self._chosen.setdefault(pk, {}).setdefault(name, []).append(chosen)
            self.keys[kind_of_model(CHOICES[name])][chosen] = ""

    def _load_definitions(self, model: type[DefinitionRow]) -> None:
        kind = kind_of_model(model)
        rows = model.rows().select_related("updated_by")
        for row in self._matching_rows(rows, list(self._conditions(model))):
            key = natural_key_of(row)
            if row.pk in self.keys[kind]:
                self.keys[kind][row.pk] = key
            if key in self._wanted[kind]:
                self.rows[kind, key] = row
            if row.published_identity:
                self._published[kind, row.published_identity] = row
        for pk in [pk for pk, key in self.keys[kind].items() if not key]:
            del self.keys[kind][pk]

    def _conditions(self, model: type[DefinitionRow]) -> Iterator[Q]:
        kind = kind_of_model(model)
        column = model.IDENTITY
        wanted = sorted(self._wanted[kind])
        if column != "name":
            # Long keys are found by their digests, which every database compares alike.
            column = f"{column}_digest"
            wanted = [digest(key) for key in wanted]
        for batch in slices(wanted, AT_ONCE):
            yield Q(**{f"{column}__in": batch})
        for batch in slices(sorted(self._identities[kind]), AT_ONCE):
            yield Q(published_identity__in=batch)
        for keys in slices(sorted(self.keys[kind]), AT_ONCE):
            yield Q(pk__in=keys)

    def _matching_rows(
        self, rows: PublishedRows[Any], conditions: Sequence[Q]
    ) -> Iterator[Any]:
        visited: set[int] = set()
        # SQLite limits the values of a statement.
        for batch in slices(conditions, TOGETHER):
            matches = rows.filter(reduce(or_, batch))
            if self._lock:
                # A join cannot be locked on every database.
                list(matches.select_for_update().order_by("pk").values_list("pk"))
            for row in matches.select_related("published").order_by("pk"):
                if row.pk not in visited:
                    visited.add(row.pk)
                    yield row
