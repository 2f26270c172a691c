"""Servers: endpoints with their own catalog, texts and access."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.signals import m2m_changed, post_delete
from django.utils.translation import gettext_lazy as _

from mcp_app.conf import mcp_settings
from mcp_app.interface.definitions import icons_from_json
from mcp_app.interface.rules import uri_problem, visible
from mcp_app.interface.server import BY_TOKEN, PAGE_SIZE, PUBLIC, RESERVED_SLUGS
from mcp_app.models.changes import watch_model
from mcp_app.models.definitions import (
    EventType,
    Prompt,
    Resource,
    ResourceTemplate,
    Tool,
)
from mcp_app.models.fields import (
    DEMANDS,
    CheckedRow,
    ExactCharField,
    JSONTextField,
    demand_problems,
    digest,
    split_words,
    tag_problems,
)
from mcp_app.models.versions import PublishedRow, PublishedRows, publishable
from mcp_app.protocol.json_types import JsonObject

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_WEB = ("https://", "http://")


@publishable
@watch_model
class Server(PublishedRow, CheckedRow):
    """An MCP endpoint: `/mcp` for the slug `default`, `/mcp/<slug>` for others.

    What it says and offers is published; the other columns hold from the save on.
    """

    class Selection(models.TextChoices):
        ALL = "all", _("Everything published")
        TAGS = "tags", _("Everything with these tags")
        CHOSEN = "chosen", _("Only the ones chosen here")

    class ToolList(models.TextChoices):
        ALL = "all", _("All of its tools")
        SEARCH = "search", _("Three tools that search, and tools with these tags")

    SERVED = frozenset({"slug", "access", "listed", *DEMANDS, "page_size", "published"})
    PRIVATE = frozenset({"broken"})
    CONTENT = (
        "title",
        "description",
        "instructions",
        "version",
        "website_url",
        "icons",
        "selection",
        "tags",
        "listing",
        "listed_tags",
    )
    CHOICES = ("tools", "resources", "templates", "prompts", "events")

    ONE_LINE = ("title", "version")
    MANY_LINES = ("description", "instructions")

    slug = ExactCharField(max_length=64, unique=True)
    title = models.CharField(max_length=255, blank=True)
    description = models.TextField(blank=True)
    instructions = models.TextField(blank=True)
    version = models.CharField(max_length=64, blank=True)
    website_url = models.CharField(max_length=500, blank=True)
    icons = JSONTextField(shape="array", blank=True)
    access = models.CharField(max_length=500, blank=True, default=BY_TOKEN)
    listed = models.BooleanField(default=False, db_default=False)
    permission = models.CharField(max_length=255, blank=True)
    groups = models.TextField(blank=True)
    rule = models.CharField(max_length=255, blank=True)
    page_size = models.PositiveIntegerField(
        default=PAGE_SIZE,
        validators=[MinValueValidator(1), MaxValueValidator(PAGE_SIZE)],
    )
    selection = models.CharField(
        max_length=8, choices=Selection.choices, default=Selection.ALL
    )
    tags = models.CharField(max_length=500, blank=True)
    listing = models.CharField(
        max_length=8,
        choices=ToolList.choices,
        default=ToolList.ALL,
        db_default=ToolList.ALL.value,
    )
    listed_tags = models.CharField(
        max_length=500, blank=True, default="", db_default=""
    )

    tools = models.ManyToManyField(Tool, blank=True, related_name="servers")
    resources = models.ManyToManyField(Resource, blank=True, related_name="servers")
    templates = models.ManyToManyField(
        ResourceTemplate, blank=True, related_name="servers"
    )
    prompts = models.ManyToManyField(Prompt, blank=True, related_name="servers")
    events = models.ManyToManyField(EventType, blank=True, related_name="servers")

    objects = PublishedRows["Server"].as_manager()

    class Meta:
        ordering = ["slug"]
        verbose_name = _("server")
        verbose_name_plural = _("servers")

    def __str__(self) -> str:
        return visible(self.title or self.slug, None)

    def served_name_hash(self) -> str:
        return digest(self.slug)

    @property
    def access_names(self) -> tuple[str, ...]:
        return split_words(self.access)

    def working_content(self) -> JsonObject:
        """Return what would be published; `chosen` has primary keys by list."""
        content = super().working_content()
        if self.selection == self.Selection.CHOSEN and self.pk is not None:
            lists = {name: getattr(self, name).order_by("pk") for name in self.CHOICES}
            content["chosen"] = written_choices(
                {
                    n: list(rows.values_list("pk", flat=True))
                    for n, rows in lists.items()
                }
            )
        return content

    def put_choices(self, content: Mapping[str, Any]) -> None:
        for name in self.CHOICES:
            keys = content.get("chosen", {}).get(name, ())
            rows = getattr(self, name).model._default_manager
            # Rows that were deleted since cannot be chosen again.
            getattr(self, name).set(rows.filter(pk__in=keys))

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from super().problems()
        yield from tag_problems(self.tags)
        listed = tag_problems(self.listed_tags)
        yield from (("listed_tags", sentence) for _field, sentence in listed)
        yield from self.json_problems("icons", icons_from_json)
        yield from self._access_problems()
        yield from demand_problems(self)
        yield from self._slug_problems()
        if self.selection == self.Selection.TAGS and not split_words(self.tags):
            yield "tags", "Name at least one tag, or offer everything."
        if self.website_url and not self.website_url.startswith(_WEB):
            yield "website_url", "The address must start with https:// or http://."
        elif self.website_url and (problem := uri_problem(self.website_url)):
            yield "website_url", problem

    def _slug_problems(self) -> Iterator[tuple[str, str]]:
        if not SLUG.fullmatch(self.slug):
            yield (
                "slug",
                f"“{visible(self.slug)}” cannot be an address: only small letters "
                "a-z, digits and - (not at the ends) are allowed.",
            )
        elif self.slug in RESERVED_SLUGS:
            yield (
                "slug",
                f"“{self.slug}” cannot be used here, because clients expect something"
                " else at that address.",
            )

    def _access_problems(self) -> Iterator[tuple[str, str]]:
        names = self.access_names
        if PUBLIC in names and len(names) > 1:
            yield (
                "access",
                "“public” lets everyone in, so it must be the only entry. Remove it,"
                " or the others.",
            )
        methods = mcp_settings.authentication
        for name in names:
            if name != PUBLIC and name not in methods:
                available = ", ".join(methods) or "none"
                yield (
                    "access",
                    f"The settings have no authentication method “{name}”. Available:"
                    f" {available}.",
                )


def written_choices(choices: Mapping[str, list[Any]]) -> JsonObject:
    """Return choices as a version stores them: without an empty list of events."""
    return {name: keys for name, keys in choices.items() if keys or name != "events"}


def _update_content_hashes(
    instance: models.Model, action: str, reverse: bool, using: str, **_: object
) -> None:
    """Update the hashes of servers whose choices changed, but none of their columns."""
    if not action.startswith("post_"):
        return
    servers = Server.objects.using(using)
    # `reverse`: a definition chose its servers, so any server may have changed.
    conditions = (
        {"selection": Server.Selection.CHOSEN} if reverse else {"pk": instance.pk}
    )
    for server in servers.filter(**conditions):
        server.content_hash = server.working_hash()
        # A plain queryset: this raises no lock_version, and records no change.
        rows = models.QuerySet[Server](Server, using=using).filter(pk=server.pk)
        rows.update(content_hash=server.content_hash)


def _update_after_deletion(using: str, **_: object) -> None:
    """Update the hashes of servers that may have chosen a deleted definition."""
    _update_content_hashes(Server(), "post_clear", reverse=True, using=using)


for _model in (Tool, Resource, ResourceTemplate, Prompt, EventType):
    post_delete.connect(
        _update_after_deletion, sender=_model, dispatch_uid=f"gone {_model.__name__}"
    )

for _name in Server.CHOICES:
    m2m_changed.connect(_update_content_hashes, sender=getattr(Server, _name).through)
