"""A call as the audit takes it: plain tuples, because each request makes one."""

from __future__ import annotations

from typing import TypeAlias

Circumstances: TypeAlias = tuple[
    str, str, str, int, str, str, str, str, str, str, str, str, str
]
"""What a call has in common with others: server, kind, name, version, outcome; the
principal's kind, user, user name and client; the client's name and version; session;
revision.  In the order of `Call.SHARED`."""

CallRecord: TypeAlias = tuple[
    Circumstances, float, float, int, bytes, int, str, str, str
]
"""Circumstances; when it began (monotonic) and what it took, in seconds; the bytes of
the answer; the arguments where they are short, else how many bytes they have and their
digest; the id of a failure; what the client was told of it."""

LONGEST_CLIENT = 128
"""Characters that are kept of what a client calls itself."""
LONGEST_ERROR = 500
SHORT_ARGUMENTS = 1_024
"""Bytes of arguments that wait for their digest; longer ones need not be kept."""
