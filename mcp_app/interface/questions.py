"""Questions to the client and their answers (client/elicitation, sampling, roots)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

from mcp_app.interface.definitions import ToolDefinition
from mcp_app.interface.errors import ToolError
from mcp_app.protocol.content import Block, ResourceContents, Role
from mcp_app.protocol.results import check_meta

Form = TypeVar("Form")
FormSource: TypeAlias = type[Form] | Mapping[str, object]
"""A pydantic model, a dataclass, a Django form, or a flat JSON Schema.

Clients are not shown a `pattern`, which the protocol does not know, but an answer
must match it: say in the description what is wanted.
"""


@dataclass(frozen=True, slots=True)
class Accepted(Generic[Form]):
    """The person sent the form; `data` has the form's own type."""

    data: Form


@dataclass(frozen=True, slots=True)
class Declined:
    """The person said no."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The person closed the question without an answer."""


@dataclass(frozen=True, slots=True)
class Elicit(Generic[Form]):
    """Ask the person for the fields of a flat form."""

    message: str
    form: FormSource[Form]


@dataclass(frozen=True, slots=True)
class ElicitUrl:
    """Ask the person to visit a URL; the answer says only whether they agreed."""

    message: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingMessage:
    """A message of a conversation with the client's model."""

    role: Role
    content: Sequence[Block]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPreferences:
    """Hints are names of models; priorities are from 0 to 1."""

    hints: Sequence[str] = ()
    cost: float | None = None
    speed: float | None = None
    intelligence: float | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """Ask the client's model; a string stands for one message of the user."""

    messages: str | Sequence[SamplingMessage]
    max_tokens: int = field(kw_only=True)
    system: str | None = field(default=None, kw_only=True)
    tools: Sequence[ToolDefinition] = field(default=(), kw_only=True)
    tool_choice: Literal["auto", "required", "none"] | None = field(
        default=None, kw_only=True
    )
    temperature: float | None = field(default=None, kw_only=True)
    stop_sequences: Sequence[str] = field(default=(), kw_only=True)
    preferences: ModelPreferences | None = field(default=None, kw_only=True)
    metadata: Mapping[str, object] | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingResult:
    """What the client's model said."""

    role: Role
    content: Sequence[Block]
    model: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The text of all text blocks."""
        return "".join(b.as_text() for b in self.content if b.type == "text")


@dataclass(frozen=True, slots=True)
class Roots:
    """Ask for the client's root folders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A folder or file of the client: `uri` is a file URI."""

    uri: str
    name: str | None = None


Question: TypeAlias = Elicit[Form] | ElicitUrl | Sample | Roots
ElicitAnswer: TypeAlias = Accepted[Form] | Declined | Cancelled


# -- roots -----------------------------------------------------------------------------
# Files of the client: what lies within the folders that it opened (client/roots).


def within(roots: Sequence[Root], path: str | os.PathLike[str]) -> Path:
    """Return where a path really leads, which is in a root; looks at the disk.

    For a server that has the client's disk, such as one on stdio.  `..` and symbolic
    links are followed before; the file itself need not be there.  A relative path is
    that of the first root that has it, else of the first of all.

    Raises `ToolError` for what is outside, also of a root that is gone: the model is
    told, and the next call may be shown other roots.
    """
    folders = list(_existing_folders(roots))
    if not folders:
        raise ToolError("None of the client's root folders exists here.")
    having = (folder for folder in folders if os.path.lexists(folder / path))
    try:
        resolved = (next(having, folders[0]) / path).resolve()
    except (OSError, RuntimeError, ValueError):
        # A loop of links, or a NUL character.
        resolved = None
    if resolved is not None and any(resolved.is_relative_to(each) for each in folders):
        return resolved
    raise ToolError(f"{os.fspath(path)!r:.200} is outside the client's root folders.")


def _existing_folders(roots: Sequence[Root]) -> Iterator[Path]:
    for root in roots:
        parts = urlsplit(root.uri)
        if parts.scheme == "file" and parts.netloc in ("", "localhost"):
            try:
                yield Path(url2pathname(parts.path)).resolve(strict=True)
            except (OSError, RuntimeError, ValueError):
                continue


# -- results ---------------------------------------------------------------------------
# What user code may return where a plain value is not enough.


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The whole result of a tool: blocks, and a JSON object beside them."""

    content: Sequence[Block]
    structured: Mapping[str, object] | None = field(default=None, kw_only=True)
    is_error: bool = field(default=False, kw_only=True)
    meta: Mapping[str, object] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.meta is not None:
            check_meta(self.meta)


@dataclass(frozen=True, slots=True)
class ResourceOutput:
    """The contents that `resources/read` answers with."""

    contents: Sequence[ResourceContents]


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt."""

    content: Block
    role: Role = "user"


@dataclass(frozen=True, slots=True)
class PromptOutput:
    """The messages that `prompts/get` answers with."""

    messages: Sequence[PromptMessage]
    description: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """Values that complete an argument: at most 100 are sent, best first."""

    values: Sequence[str]
    total: int | None = None
    has_more: bool | None = None
