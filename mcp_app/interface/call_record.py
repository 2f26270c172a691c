"""The fields of a call as the audit takes it; a column of the call log begins here.

The audit takes plain tuples with these fields, in this order: to make named ones would
cost each call 4 % more.

The model `Call` has a column for each field of `Circumstances`, in this order, and its
own columns in `Call.OWN`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

CircumstancesValues: TypeAlias = tuple[str | int, ...]
"""The values of `Circumstances`, in their order."""
CallValues: TypeAlias = tuple[Any, ...]
"""The values of a `CallRecord`, in their order."""


class Circumstances(NamedTuple):
    """What a call has in common with others; equal ones are stored once."""

    server: str
    kind: str
    name: str
    version: int
    outcome: str
    principal: str
    """The kind of the principal."""
    user_id: str
    user_name: str
    principal_client: str
    client_name: str
    client_version: str
    session: str
    revision: str


class CallRecord(NamedTuple):
    """A call that has its answer."""

    circumstances: Circumstances
    began: float
    """Seconds of the monotonic clock."""
    took: float
    """Seconds."""
    size: int
    """Bytes of the answer."""
    arguments: bytes
    """The canonical arguments if they are short, else nothing."""
    arguments_size: int
    """Bytes of the arguments if they are long, else 0."""
    arguments_digest: str
    """The digest of the arguments if they are long."""
    failure: str
    """The id of a failure in the log."""
    error: str
    """What the client was told of it, shortened."""
