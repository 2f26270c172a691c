"""The Context of a call: one for async functions, and the same for blocking ones.

A function that annotates a parameter with `Context` (async) or `SyncContext` (sync)
gets it; the members are the same, and the same in both eras.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from mcp_app.interface.principal import Principal
from mcp_app.interface.questions import (
    ElicitAnswer,
    FormSource,
    Question,
    Root,
    SamplingMessage,
    SamplingResult,
)
from mcp_app.protocol import negotiation

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

Form = TypeVar("Form")
Value = TypeVar("Value")
Arguments = ParamSpec("Arguments")

Level: TypeAlias = negotiation.Level
LEVELS = negotiation.LEVELS

User: TypeAlias = "AbstractBaseUser"
"""A row of the site's user model."""

Answer: TypeAlias = ElicitAnswer[Any] | SamplingResult | Sequence[Root]

MAX_RECONNECT_DELAY_S = 600.0
"""Longest time until a client comes back, in seconds.  The answer is kept for much
longer, even if the call ends at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """The client as it describes itself; never a ground for a decision of security."""

    name: str = ""
    version: str = ""
    title: str = ""
    capabilities: Mapping[str, object] = field(default_factory=dict)


class Queued:
    """The result of queueing: there is nothing to wait for, but `await` is allowed.

    In other MCP libraries these methods are async, so people may write `await` here.
    """

    def __await__(self) -> Generator[None]:
        yield from ()


class _Common(ABC):
    """The members that never wait: the same for async and for blocking functions."""

    principal: Principal
    client: Client
    revision: str
    server: str
    request_id: str | int

    @abstractmethod
    def log(self, level: Level, data: object, logger: str | None = None) -> Queued:
        """Queue a log message for the client, if it wants that level."""

    @abstractmethod
    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Queued:
        """Queue a progress notification, if the client gave a token."""

    @abstractmethod
    def visited(self, key: str | None = None) -> None:
        """Say that the person has done what `elicit_url` sent them to a URL for.

        An accepted question says only that the person agreed to go.  With a key this
        ends the visit of that question, without one all that were agreed to.  Only
        clients of revision 2025-11-25 are told, once for each visit.
        """

    @abstractmethod
    def changed(self, what: str) -> None:
        """Say that a resource (its URI) or a list ("tools", "prompts", "resources")
        changed."""

    @abstractmethod
    def reconnect(self, after: float) -> None:
        """Close the client's connection, and let it come back for the rest.

        For calls that take minutes: nobody holds a connection open meanwhile.  The
        client has what was sent before.  It comes back `after` so many seconds (more
        than 0, at most `MAX_RECONNECT_DELAY_S`, else ValueError) and then gets the
        rest.  The call goes on, and this returns at once.  If the call ends before the
        connection is closed, its answer goes over that connection.

        Nothing happens where the client could not come back (only revision 2025-11-25
        tells clients how to, and not those that take JSON alone), and where the
        connection that the call came with is closed already.
        """

    @abstractmethod
    def as_task(self) -> None:
        """Go on in the background, for a tool with `ask_first`.

        If the client takes tasks the call ends here, and the function runs again from
        its start as a task, with the answers so far.  Else nothing happens.
        """

    @property
    @abstractmethod
    def task_id(self) -> str | None:
        """The id of the task that runs, None in a call."""

    @property
    @abstractmethod
    def cancelled(self) -> bool:
        """Whether nobody waits for the answer any more."""

    @property
    @abstractmethod
    def deadline(self) -> float | None:
        """Seconds left of the call's time, None where it has no limit."""


class Context(_Common):
    """The context of an async function."""

    @abstractmethod
    async def elicit(
        self,
        message: str,
        form: FormSource[Form],
        *,
        key: str | None = None,
        timeout: float | None = None,
    ) -> ElicitAnswer[Form]:
        """Ask the person for a form; `timeout` is in seconds."""

    @abstractmethod
    async def elicit_url(
        self, message: str, url: str, *, key: str | None = None
    ) -> ElicitAnswer[None]:
        """Ask the person to visit a URL."""

    @abstractmethod
    async def sample(
        self,
        messages: str | Sequence[SamplingMessage],
        *,
        max_tokens: int,
        key: str | None = None,
        **options: Any,
    ) -> SamplingResult:
        """Ask the client's model; the options are those of `Sample`."""

    @abstractmethod
    async def list_roots(self, *, key: str | None = None) -> Sequence[Root]:
        """Ask for the client's root folders."""

    @abstractmethod
    async def ask(self, **questions: Question[Any]) -> Mapping[str, Answer]:
        """Ask several questions at once; the answers come by the same names."""

    @abstractmethod
    async def once(
        self,
        key: str,
        function: Callable[Arguments, Value],
        *arguments: Arguments.args,
        **keyword_arguments: Arguments.kwargs,
    ) -> Value:
        """Run a function once, even if the call runs again; return its JSON result.

        The result is stored in the transaction of the step: what the function does
        in the database of this app happens exactly once.
        """

    @abstractmethod
    async def user(self) -> User | None:
        """Return the Django user, read afresh at the first use."""


class SyncContext(_Common):
    """The context of a sync function: the members of `Context`, blocking."""

    @abstractmethod
    def elicit(
        self,
        message: str,
        form: FormSource[Form],
        *,
        key: str | None = None,
        timeout: float | None = None,
    ) -> ElicitAnswer[Form]:
        """Ask the person for a form; `timeout` is in seconds."""

    @abstractmethod
    def elicit_url(
        self, message: str, url: str, *, key: str | None = None
    ) -> ElicitAnswer[None]:
        """Ask the person to visit a URL."""

    @abstractmethod
    def sample(
        self,
        messages: str | Sequence[SamplingMessage],
        *,
        max_tokens: int,
        key: str | None = None,
        **options: Any,
    ) -> SamplingResult:
        """Ask the client's model; the options are those of `Sample`."""

    @abstractmethod
    def list_roots(self, *, key: str | None = None) -> Sequence[Root]:
        """Ask for the client's root folders."""

    @abstractmethod
    def ask(self, **questions: Question[Any]) -> Mapping[str, Answer]:
        """Ask several questions at once; the answers come by the same names."""

    @abstractmethod
    def once(
        self,
        key: str,
        function: Callable[Arguments, Value],
        *arguments: Arguments.args,
        **keyword_arguments: Arguments.kwargs,
    ) -> Value:
        """Run a function once, even if the call runs again; return its JSON result."""

    @abstractmethod
    def user(self) -> User | None:
        """Return the Django user, read afresh at the first use."""


AnyContext: TypeAlias = Context | SyncContext
