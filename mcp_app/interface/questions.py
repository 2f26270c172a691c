"""Questions to the client and their answers (client/elicitation, sampling, roots)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeAlias, TypeVar

from mcp_app.interface.definitions import ToolDefinition
from mcp_app.protocol.content import Block, Role

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
