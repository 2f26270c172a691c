"""What staff define in the admin: tools, resources, prompts and the like."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final, TypeVar

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from mcp_app.conf import mcp_settings
from mcp_app.interface.definitions import (
    annotations_from_json,
    arguments_from_json,
    icons_from_json,
    suggestions_from_json,
)
from mcp_app.interface.rules import (
    MAX_MEDIA_TYPE_LENGTH,
    media_type_problem,
    name_problem,
    text_problem,
    uri_problem,
    visible,
)
from mcp_app.models.changes import watch_model
from mcp_app.models.fields import (
    DEMANDS,
    CheckedRow,
    DigestField,
    ExactCharField,
    JSONTextField,
    demand_problems,
    digest,
    tag_problems,
)
from mcp_app.models.versions import (
    DefinitionVersion,
    PublishedRow,
    PublishedRows,
    State,
    publishable,
)
from mcp_app.protocol import headers, jsonrpc, schemas
from mcp_app.protocol.apps import SCHEME
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.uri_templates import UriTemplate

Row = TypeVar("Row", bound="DefinitionRow")


class DefinitionRows(PublishedRows[Row]):
    def _state_cases(self) -> Iterator[models.When]:
        # If an overlay is not published, clients are served what the code says.
        untouched = models.Q(source=Source.CODE, published=None)
        as_in_code = models.Value(State.PUBLISHED)
        broken, *cases = super()._state_cases()
        yield broken
        yield models.When(untouched, content_hash=NOTHING, then=as_in_code)
        yield models.When(untouched, then=models.Value(State.CHANGED))
        yield from cases


class Source(models.TextChoices):
    """Where a definition comes from; a row of what code declares is its overlay."""

    HERE = "here", _("made here")
    CODE = "code", _("from code")


NOTHING = digest(b"{}")
"""The hash of an overlay that changes nothing."""


class DefinitionRow(PublishedRow, CheckedRow):
    """The columns of all definitions; the kind decides what `config` means.

    A row whose `source` is code is an overlay: an empty column means the code's value.
    """

    ONE_LINE = ("name", "title")
    SERVED = frozenset({"published", "published_identity"})
    PRIVATE = frozenset({"broken", "tokens", "to_fix", "advices"})
    POINTERS = ("published", "published_identity")
    IDENTITY: ClassVar[str] = "name"
    OVERLAY: ClassVar[tuple[str, ...]] = (
        "title",
        "description",
        *DEMANDS,
        "timeout",
        "tags",
        "position",
    )
    CONTENT = ("name", *OVERLAY, "kind", "config", "icons")
    WHO: ClassVar[tuple[str, ...]] = DEMANDS
    """Columns that say who may use it."""

    title_in_code: ClassVar[Callable[[Any], str]] = staticmethod(lambda _row: "")
    """Returns the title that code gives a row; replaced when the app is ready."""

    name = ExactCharField(max_length=128)
    title = models.CharField(max_length=255, blank=True)
    description = models.TextField(blank=True)
    kind = models.CharField(max_length=16, default="text")
    config = JSONTextField(default="{}")
    icons = JSONTextField(shape="array", blank=True)
    permission = models.CharField(max_length=255, blank=True)
    groups = models.TextField(blank=True)
    rule = models.CharField(max_length=255, blank=True)
    timeout = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(0.001)]
    )
    tags = models.CharField(max_length=500, blank=True)
    position = models.IntegerField(default=0)
    source = models.CharField(
        max_length=4, choices=Source.choices, default=Source.HERE, editable=False
    )
    published_identity = models.CharField(  # noqa: DJ001 - nothing is not unique
        max_length=64, null=True, unique=True, editable=False
    )
    """The digest of its published name or URI: no two rows have the same."""
    tokens = models.PositiveIntegerField(default=0, editable=False)
    to_fix = models.PositiveIntegerField(default=0, editable=False)
    advices = models.PositiveIntegerField(default=0, editable=False)
    created = models.DateTimeField(auto_now_add=True, editable=False)
    updated = models.DateTimeField(auto_now=True, editable=False)
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
    )

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return visible(self.title or type(self).title_in_code(self) or self.name, None)

    @property
    def identity(self) -> str:
        """What names the working copy on a server: its name or URI."""
        return str(getattr(self, self.IDENTITY))

    def served_name_hash(self) -> str:
        return self.published_identity or digest(self.identity)

    @staticmethod
    def identity_hash(identity: str) -> str:
        return digest(identity)

    @property
    def from_code(self) -> bool:
        return self.source == Source.CODE

    def content_columns(self) -> tuple[str, ...]:
        return self.OVERLAY if self.from_code else self.CONTENT

    def served_hash(self) -> str:
        return super().served_hash() or (NOTHING if self.from_code else "")

    def set_published(
        self, version: DefinitionVersion | None, content: Mapping[str, Any]
    ) -> None:
        super().set_published(version, content)
        identity = None if version is None else content.get(self.IDENTITY)
        self.published_identity = None if identity is None else digest(identity)

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from super().problems()
        if self.IDENTITY == "name" and (problem := name_problem(self.name)):
            yield "name", problem
        yield from tag_problems(self.tags)
        yield from self.json_problems("icons", icons_from_json)
        yield from demand_problems(self)


class TaskChoice(models.TextChoices):
    """Whether a tool runs in the background (`protocol.tasks.TaskSupport`)."""

    FORBIDDEN = "forbidden", _("No")
    OPTIONAL = "optional", _("If the client can")
    REQUIRED = "required", _("Always")


AS_TEXT: Final = "text"
"""The `app` of an overlay whose tool has no app, even if the code names one."""


class ApprovalChoice(models.TextChoices):
    """Who must agree to a call before it runs (`interface.definitions.Approver`)."""

    NOBODY = "", _("No")
    SELF = "self", _("The person who calls, on this site")
    OTHER = "other", _("Another person, on this site")


@publishable
@watch_model
class Tool(DefinitionRow):
    """Something that a model may do; the schemas are stored as they were given."""

    HINTS = ("read_only", "destructive", "idempotent", "open_world")
    CALLS = ("app", "calls_per_minute", "keeps_values", "hidden_values", "task")
    OVERLAY = (*DefinitionRow.OVERLAY, *HINTS, *CALLS, "approval")
    CONTENT = (
        *DefinitionRow.CONTENT,
        *("input_schema", "output_schema", *HINTS, *CALLS, "approval"),
    )
    WHO = (*DEMANDS, "approval")

    input_schema = JSONTextField(blank=True)
    output_schema = JSONTextField(blank=True)
    read_only = models.BooleanField(null=True, blank=True)
    destructive = models.BooleanField(null=True, blank=True)
    idempotent = models.BooleanField(null=True, blank=True)
    open_world = models.BooleanField(null=True, blank=True)
    calls_per_minute = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)]
    )
    keeps_values = models.BooleanField(default=False, db_default=False)
    hidden_values = models.TextField(blank=True, default="", db_default="")
    """Parameters whose values are not kept, one in each line."""
    app = models.CharField(max_length=255, blank=True, default="", db_default="")
    """The URI of the page that shows its answers, "" for none."""
    task = models.CharField(
        max_length=9, blank=True, choices=TaskChoice.choices, default="", db_default=""
    )
    approval = models.CharField(
        max_length=5,
        blank=True,
        choices=ApprovalChoice.choices,
        default="",
        db_default="",
    )

    objects = DefinitionRows["Tool"].as_manager()

    class Meta:
        ordering = ["position", "name"]
        verbose_name = _("tool")
        verbose_name_plural = _("tools")
        constraints = [
            models.UniqueConstraint(
                fields=["name"],
                name="mcp_tool_name",
                violation_error_code="unique",
                violation_error_message=_("Another tool has this name."),
            )
        ]

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from super().problems()
        yield from self.json_problems("input_schema", _check_input_schema)
        yield from self.json_problems("output_schema", _check_schema)
        if self.app not in ("", AS_TEXT) and not self.app.startswith(SCHEME):
            yield "app", _("The address of an app must begin with %s.") % SCHEME


def _check_schema(schema: JsonObject) -> None:
    if schema.get("type") != "object":
        raise ValueError('The schema needs "type": "object" at its top.')
    try:
        limits = mcp_settings.limits
        depth, number = limits.schema_depth, limits.subschemas
        schemas.check_schema(schema, schemas.SchemaLimits(limits.schema, depth, number))
    except schemas.SchemaError as error:
        raise ValueError(str(error)) from None
    if problem := text_problem(jsonrpc.write(schema).decode(), lines=True):
        raise ValueError(problem)


def _check_input_schema(schema: JsonObject) -> None:
    _check_schema(schema)
    headers.mirrored_parameters(schema)


class ReadableRow(DefinitionRow):
    """The columns that resources and templates have in common."""

    CONTENT = (*DefinitionRow.CONTENT, "mime_type", "annotations", "ttl_ms", "public")
    COLLISION: ClassVar[str]
    """The beginning of the sentence about another row with the same address."""

    mime_type = models.CharField(max_length=MAX_MEDIA_TYPE_LENGTH, blank=True)
    annotations = JSONTextField(blank=True)
    ttl_ms = models.PositiveIntegerField(default=0)
    public = models.BooleanField(default=False)

    class Meta:
        abstract = True

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from super().problems()
        yield from self.json_problems("annotations", annotations_from_json)
        kind = self.mime_type
        if problem := text_problem(kind) or media_type_problem(kind):
            yield "mime_type", problem
        if problem := self.address_problem():
            yield self.IDENTITY, problem

    def collisions(self) -> Iterator[tuple[str, str]]:
        yield from super().collisions()
        if self.address_problem():
            return
        same = {f"{self.IDENTITY}_digest": digest(self.identity)}
        if type(self)._default_manager.exclude(pk=self.pk).filter(**same).exists():
            yield self.IDENTITY, f"{self.COLLISION} {self.identity}."

    def address_problem(self) -> str | None:
        """Say why nobody could read it at its URI, or at the URIs of its template."""
        raise NotImplementedError


@publishable
@watch_model
class Resource(ReadableRow):
    """Something to read at a fixed URI; `size` is in bytes."""

    IDENTITY = "uri"
    CONTENT = (*ReadableRow.CONTENT, "uri", "size")
    COLLISION = "Another resource has the address"

    uri = models.TextField()
    uri_digest = DigestField(of="uri")
    size = models.PositiveBigIntegerField(null=True, blank=True, editable=False)

    objects = DefinitionRows["Resource"].as_manager()

    class Meta:
        ordering = ["position", "name"]
        verbose_name = _("resource")
        verbose_name_plural = _("resources")
        constraints = [
            models.UniqueConstraint(fields=["uri_digest"], name="mcp_resource_uri")
        ]

    def address_problem(self) -> str | None:
        return uri_problem(self.uri)


@publishable
@watch_model
class ResourceTemplate(ReadableRow):
    """Resources whose URIs match a template of RFC 6570.

    `suggestions` is what completes its variables: a list of texts by name.
    """

    IDENTITY = "uri_template"
    CONTENT = (*ReadableRow.CONTENT, "uri_template", "suggestions")
    COLLISION = "Another template has the pattern"

    uri_template = models.TextField()
    uri_template_digest = DigestField(of="uri_template")
    suggestions = JSONTextField(blank=True)

    objects = DefinitionRows["ResourceTemplate"].as_manager()

    class Meta:
        ordering = ["position", "name"]
        verbose_name = _("resource template")
        verbose_name_plural = _("resource templates")
        constraints = [
            models.UniqueConstraint(
                fields=["uri_template_digest"], name="mcp_template_uri"
            )
        ]

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from super().problems()
        yield from self.json_problems("suggestions", suggestions_from_json)

    def address_problem(self) -> str | None:
        if problem := text_problem(self.uri_template):
            return problem
        try:
            template = UriTemplate.parse(self.uri_template)
        except ValueError as error:
            return str(error)
        if not template.variables:
            return (
                f"“{self.uri_template}” has no variable in braces. For one fixed"
                " address, add a resource instead."
            )
        return uri_problem(template.expand(dict.fromkeys(template.variables, "x")))


@publishable
@watch_model
class Prompt(DefinitionRow):
    """A ready-made request that people pick from a menu in their client."""

    CONTENT = (*DefinitionRow.CONTENT, "arguments")

    arguments = JSONTextField(shape="array", blank=True)

    objects = DefinitionRows["Prompt"].as_manager()

    class Meta:
        ordering = ["position", "name"]
        verbose_name = _("prompt")
        verbose_name_plural = _("prompts")
        constraints = [
            models.UniqueConstraint(
                fields=["name"],
                name="mcp_prompt_name",
                violation_error_code="unique",
                violation_error_message=_("Another prompt has this name."),
            )
        ]

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from super().problems()
        yield from self.json_problems("arguments", arguments_from_json)


@publishable
@watch_model
class EventType(DefinitionRow):
    """Something that happens; clients that ask for it are told."""

    # Lists of event types have no icons.
    CONTENT = tuple(each for each in DefinitionRow.CONTENT if each != "icons")

    objects = DefinitionRows["EventType"].as_manager()

    class Meta:
        ordering = ["position", "name"]
        verbose_name = _("event type")
        verbose_name_plural = _("event types")
        constraints = [
            models.UniqueConstraint(
                fields=["name"],
                name="mcp_eventtype_name",
                violation_error_code="unique",
                violation_error_message=_("Another event type has this name."),
            )
        ]
