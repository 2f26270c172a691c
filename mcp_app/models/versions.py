"""Published versions: what clients see, as it was when somebody published it.

A row is a working copy; its version is a snapshot that nothing changes any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NoReturn, Self, TypeVar, cast

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import models, transaction
from django.db.models.signals import post_delete
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from mcp_app.models.changes import Change, WatchedRow, WatchedRows
from mcp_app.models.examples import Example
from mcp_app.models.fields import (
    DigestField,
    ExactCharField,
    content_of,
    digest,
    parse_json,
    put_content,
)
from mcp_app.models.transactions import slices
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject

PUBLISH_BATCH_SIZE = 500

Row = TypeVar("Row", bound="PublishedRow")


class VersionRows(models.QuerySet["DefinitionVersion"]):
    """Versions are made, and never changed."""

    def of(self, row: PublishedRow) -> VersionRows:
        return self.filter(kind=row.kind_of_row, ref=str(row.pk)).order_by("-number")

    def update(self, **values: Any) -> NoReturn:
        raise TypeError("A version can never be changed. Publish another one.")


class DefinitionVersion(models.Model):
    """`kind` and `ref` name the row as a `Change` does; numbers only go up.

    `content` is JSON, `hash` its SHA-256.  `restored` is the number of the version
    that a roll back published again.
    """

    id = models.BigAutoField(primary_key=True)
    kind = ExactCharField(max_length=32)
    ref = ExactCharField(max_length=64)
    number = models.PositiveIntegerField()
    content = models.TextField()
    hash = DigestField(of="content")
    restored = models.PositiveIntegerField(null=True)
    note = models.TextField(blank=True)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    author_name = models.CharField(max_length=255, blank=True)
    created = models.DateTimeField()

    objects = VersionRows.as_manager()

    class Meta:
        default_permissions = ()
        permissions = [
            ("publish", _("Can publish and roll back")),
            ("try", _("Can try in the console")),
            ("try_as", _("Can try as another user")),
            ("behind", _("Can change what stands behind a definition")),
            ("stop", _("Can stop and start")),
            ("grant", _("Can change who may use it")),
            ("bundle", _("Can import and export bundles")),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "ref", "number"], name="mcp_version_number"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.ref}, version {self.number}"

    def save(self, *args: Any, **options: Any) -> None:
        if not self._state.adding:
            raise TypeError("A version can never be changed. Publish another one.")
        super().save(*args, **options)

    @property
    def fingerprint(self) -> str:
        return self.hash[:8]

    def read(self) -> JsonObject:
        value: JsonObject = parse_json(self.content)
        return value


class ContentHashField(DigestField):
    """The hash of what would be published now."""

    def pre_save(self, model_instance: models.Model, add: bool) -> str:
        # In migrations, models have only columns, and none of our methods.
        if isinstance(model_instance, PublishedRow):
            setattr(model_instance, self.attname, model_instance.working_hash())
        return str(getattr(model_instance, self.attname))


class State(models.TextChoices):
    """What people call the state of a definition or a server."""

    UNPUBLISHED = "unpublished", _("Not published")
    PUBLISHED = "published", _("Published")
    CHANGED = "changed", _("Changed")
    STOPPED = "stopped", _("Stopped")
    BROKEN = "broken", _("Broken")


class PublishedRows(WatchedRows[Row]):
    """Working copies with their states."""

    def update(self, **values: Any) -> int:
        if values.keys().isdisjoint(self.model.CONTENT):
            return super().update(**values)
        with transaction.atomic(using=self._write_alias(), savepoint=False):
            keys = list(self.values_list("pk", flat=True))
            count = super().update(**values)
            rows = self.model._default_manager.using(self.db)
            # The hash alone is no change of the row, so the plain `update` sets it.
            plain = models.QuerySet[Row](self.model, using=self.db)
            for batch in slices(keys, PUBLISH_BATCH_SIZE):
                for row in rows.filter(pk__in=batch):
                    plain.filter(pk=row.pk).update(content_hash=row.working_hash())
        return count

    def with_states(self, stopped: models.Exists) -> Self:
        """Add `reckoned_state`, by which rows can be filtered and sorted.

        `stopped` is the condition that a stop holds a row: `stops.is_stopped`.
        """
        states = models.When(stopped, then=models.Value(State.STOPPED))
        return self.annotate(reckoned_state=models.Case(states, *self._state_cases()))

    def _state_cases(self) -> Iterator[models.When]:
        same = models.Q(published__hash=models.F("content_hash"))
        yield models.When(~models.Q(broken=""), then=models.Value(State.BROKEN))
        yield models.When(same, then=models.Value(State.PUBLISHED))
        yield models.When(published=None, then=models.Value(State.UNPUBLISHED))
        yield models.When(~same, then=models.Value(State.CHANGED))

    def publish(
        self,
        rows: Iterable[Row],
        *,
        author: AbstractBaseUser | None = None,
        note: str = "",
    ) -> list[DefinitionVersion]:
        """Publish working copies as they are in memory; return their versions.

        All or none.  A row whose published version has this content keeps it.
        """
        contents = {row: row.working_content() for row in rows}
        return self.publish_contents(contents, author=author, note=note)

    def publish_contents(
        self,
        contents: Mapping[Row, JsonObject],
        *,
        author: AbstractBaseUser | None = None,
        note: str = "",
        restored: int | None = None,
    ) -> list[DefinitionVersion]:
        """Publish these contents, whatever the working copies say."""
        with transaction.atomic(using=self._write_alias()):
            served = self._lock_served(contents)
            texts = {row: jsonrpc.write(content) for row, content in contents.items()}
            fresh = [
                row
                for row, text in texts.items()
                if row.pk not in served or served[row.pk].hash != digest(text)
            ]
            signature = {
                "restored": restored,
                "note": note,
                "author_id": None if author is None else author.pk,
                "author_name": "" if author is None else author.get_username(),
                "created": timezone.now(),
            }
            versions = served | self._create_versions(fresh, texts, signature)
            for row, content in contents.items():
                row.set_published(versions[row.pk], content)
            self._store_pointers(fresh)
        return [versions[row.pk] for row in contents]

    def unpublish(self, rows: Iterable[Row]) -> None:
        with transaction.atomic(using=self._write_alias()):
            unpublished = sorted(rows, key=lambda row: row.pk)
            self._lock_served(unpublished)
            for row in unpublished:
                row.set_published(None, {})
            self._store_pointers(unpublished)

    def _lock_served(self, rows: Iterable[Row]) -> dict[Any, DefinitionVersion]:
        """Lock rows; return the published versions, by the keys of rows with one."""
        pointers: dict[Any, int | None] = {}
        for keys in slices(sorted(row.pk for row in rows), PUBLISH_BATCH_SIZE):
            locked = models.QuerySet[Row](self.model, using=self.db).filter(pk__in=keys)
            stored = locked.select_for_update().order_by("pk")
            pointers.update(stored.values_list("pk", "published_id"))
            if absent := set(keys) - pointers.keys():
                raise self.model.DoesNotExist(
                    f"{self.model._meta.verbose_name} {min(absent)} does not exist any "
                    "more."
                )
        keys = [key for key in pointers.values() if key is not None]
        versions: dict[int, DefinitionVersion] = {}
        for batch in slices(keys, PUBLISH_BATCH_SIZE):
            versions |= DefinitionVersion.objects.using(self.db).in_bulk(batch)
        return {pk: versions[key] for pk, key in pointers.items() if key is not None}

    def _create_versions(
        self,
        rows: Sequence[Row],
        texts: Mapping[Row, bytes],
        signature: Mapping[str, Any],
    ) -> dict[Any, DefinitionVersion]:
        versions = DefinitionVersion.objects.using(self.db)
        created: dict[Any, DefinitionVersion] = {}
        for batch in slices(rows, PUBLISH_BATCH_SIZE):
            old_versions = versions.filter(
                kind=batch[0].kind_of_row, ref__in=[str(row.pk) for row in batch]
            )
            last = dict(old_versions.values_list("ref").annotate(models.Max("number")))
            new = [
                DefinitionVersion(
                    kind=row.kind_of_row,
                    ref=str(row.pk),
                    number=last.get(str(row.pk), 0) + 1,
                    content=texts[row].decode(),
                    **signature,
                )
                for row in batch
            ]
            numbers = {version.ref: version.number for version in new}
            versions.bulk_create(new)
            # Not every database returns the keys of inserted rows.
            stored = old_versions.filter(number__in=set(numbers.values()))
            by_ref = {
                each.ref: each for each in stored if each.number == numbers[each.ref]
            }
            created.update((row.pk, by_ref[str(row.pk)]) for row in batch)
        return created

    def _store_pointers(self, rows: Sequence[Row]) -> None:
        plain = models.QuerySet[Row](self.model, using=self.db)
        for row in rows:
            values = {name: getattr(row, name) for name in row.POINTERS}
            plain.filter(pk=row.pk).update(**values)
            Change.objects.using(self.db).record(row.kind_of_row, str(row.pk))
            row.note_served()


def hash_of(content: JsonObject) -> str:
    return digest(jsonrpc.write(content))


class PublishedRow(WatchedRow):
    """A working copy, and the version of it that clients see.

    `CONTENT` are the columns that are published together.
    """

    CONTENT: ClassVar[tuple[str, ...]] = ()
    POINTERS: ClassVar[tuple[str, ...]] = ("published",)

    published = models.ForeignKey(
        DefinitionVersion,
        on_delete=models.PROTECT,
        null=True,
        editable=False,
        related_name="+",
    )
    content_hash = ContentHashField(editable=False, default="")
    broken = models.TextField(blank=True, editable=False)
    """Why it cannot be served as it was published; "" if it can."""

    class Meta:
        abstract = True

    @classmethod
    def rows(cls) -> PublishedRows[Self]:
        """Return all rows, typed: Django's default manager says less."""
        return cast("PublishedRows[Self]", cls._default_manager.all())

    @property
    def kind_of_row(self) -> str:
        return str(self._meta.model_name)

    @property
    def state(self) -> State:
        if self.broken:
            return State.BROKEN
        served = self.served_hash()
        if not served:
            return State.UNPUBLISHED
        return State.PUBLISHED if served == self.content_hash else State.CHANGED

    def served_hash(self) -> str:
        return "" if self.published is None else self.published.hash

    def served_name_hash(self) -> str:
        raise NotImplementedError

    def content_columns(self) -> tuple[str, ...]:
        return self.CONTENT

    def working_content(self) -> JsonObject:
        return content_of(self, self.content_columns())

    def published_content(self) -> JsonObject:
        """Return what clients are served; empty if nothing is published."""
        return {} if self.published is None else self.published.read()

    def working_hash(self) -> str:
        return hash_of(self.working_content())

    def put_content(self, content: Mapping[str, Any]) -> None:
        put_content(self, self.content_columns(), content)

    def _columns_to_save(self, requested: Iterable[str] | None) -> set[str]:
        columns = super()._columns_to_save(requested)
        if not columns.isdisjoint(self.CONTENT):
            columns.add("content_hash")
        return columns

    def put_choices(self, content: Mapping[str, Any]) -> None:
        """Restore the choices of a version, saved at once, if the model has choices."""

    def is_served(self) -> bool:
        return self.published_id is not None

    def set_published(
        self, version: DefinitionVersion | None, content: Mapping[str, Any]
    ) -> None:
        """Point to the version that is served from now on; nothing is saved."""
        self.published = version


def forget_versions(
    sender: type[models.Model], instance: models.Model, using: str, **_: object
) -> None:
    row = cast("PublishedRow", instance)
    Example.objects.using(using).of(row).delete()
    DefinitionVersion.objects.using(using).of(row).delete()


def publishable(model: type[Row]) -> type[Row]:
    """Delete versions and examples with the rows of a model; a class decorator."""
    name = f"versions {model.__name__}"
    post_delete.connect(forget_versions, sender=model, dispatch_uid=name)
    return model
