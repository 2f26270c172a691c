"""What a bundle is: servers and definitions as one reviewable file, without secrets.

Rows are named by what people and clients call them, never by primary keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from django.utils.translation import gettext as _

from mcp_app.conf import MIB
from mcp_app.interface.server import PAGE_SIZE
from mcp_app.models import (
    DefinitionRow,
    EventType,
    Prompt,
    PublishedRow,
    Resource,
    ResourceTemplate,
    Server,
    Tool,
)
from mcp_app.models.definitions import Source
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.publication import PublicationRefused

FORMAT: Final = "django-mcp-app bundle"
VERSION: Final = 2
"""The newest version that is read, and the one that is written."""
MOST_BYTES: Final = 64 * MIB
MAX_PROBLEMS: Final = 50
"""How many problems of one file are named."""

DEFINITIONS: Final[Mapping[str, type[DefinitionRow]]] = {
    "tools": Tool,
    "resources": Resource,
    "resource_templates": ResourceTemplate,
    "prompts": Prompt,
    "event_types": EventType,
}
LISTS: Final[Mapping[str, type[PublishedRow]]] = {"servers": Server, **DEFINITIONS}
"""The lists of a file in their order, and what stands in each."""
CHOICES: Final[Mapping[str, type[DefinitionRow]]] = dict(
    zip(Server.CHOICES, DEFINITIONS.values(), strict=True)
)
"""The lists of a server's choice, and what is chosen in each."""

Identity = tuple[str, str]
"""A kind of rows ("tool"), and a row's natural key."""


class BundleRefused(PublicationRefused):
    """The whole file is refused; `problems` are sentences, each with its place."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(" ".join(self.problems))


class BundleConflict(BundleRefused):
    """The file would overwrite what somebody saved and nobody published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedContent:
    """The version that clients saw where the file was made.

    `hash` is the SHA-256 of `content` as it stands in the file; `created` is ISO 8601.
    `number` is 0 if the working copy is to be published.
    """

    number: int
    hash: str
    content: JsonObject
    note: str = ""
    author: str = ""
    created: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row in a file; `place` is where it stands, as `tools[3]`.

    `working` is its working copy.  `name` is that of an overlay; `access`, `listed`,
    `demands` (columns that are not empty) and `page_size` are a server's.
    """

    place: str
    model: type[PublishedRow]
    key: str
    working: JsonObject
    published: PublishedContent | None = None
    source: str = Source.HERE
    name: str = ""
    access: tuple[str, ...] = ()
    listed: bool = False
    demands: Mapping[str, str] = field(default_factory=dict)
    page_size: int = PAGE_SIZE

    @property
    def kind(self) -> str:
        return kind_of_model(self.model)

    @property
    def identity(self) -> Identity:
        return self.kind, self.key

    @property
    def is_defined_by_staff(self) -> bool:
        """Whether staff made the definition: then its content has its name."""
        return self.model is not Server and self.source == Source.HERE

    def all_contents(self) -> list[JsonObject]:
        """Return the working copy, and what is published."""
        published = [] if self.published is None else [self.published.content]
        return [self.working, *published]

    def __str__(self) -> str:
        return _("%(kind)s “%(key)s”") % {
            "kind": self.model._meta.verbose_name,
            "key": self.key,
        }


@dataclass(frozen=True, slots=True)
class Upload:
    """Uploaded bytes, with the media type of their first upload."""

    content: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """A file that was read; `digest` is the SHA-256 of its bytes."""

    entries: tuple[Entry, ...]
    uploads: Mapping[str, Upload] = field(default_factory=dict)
    digest: str = ""
    publishes_working: bool = False
    """Whether publishing takes the working copies, not the versions in the file."""

    @property
    def fingerprint(self) -> str:
        """The first characters of the digest, for people."""
        return self.digest[:8]


def kind_of_model(model: type[PublishedRow]) -> str:
    """Return what changes and versions call the rows of a model."""
    return str(model._meta.model_name)


def key_column(model: type[PublishedRow]) -> str:
    """Return the column that names a row of a model at every site."""
    return model.IDENTITY if issubclass(model, DefinitionRow) else "slug"


def natural_key_of(row: PublishedRow) -> str:
    """Return the natural key of a row's working copy."""
    return str(getattr(row, key_column(type(row))))
