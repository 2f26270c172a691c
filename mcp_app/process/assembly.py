"""Builds the parts of a process from the settings."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable

from django.utils.module_loading import import_string

from mcp_app.audit.call_log import STRANGERS_ROWS, CallLog
from mcp_app.auth.permissions import RightsCache, UserRows
from mcp_app.conf import Limits, mcp_settings, secrets
from mcp_app.pools.mailbox import Mailbox
from mcp_app.pools.user_threads import UserThreads
from mcp_app.process.rates import Rates
from mcp_app.protocol.sealing import derived_key
from mcp_app.server.exchange import Adapters, Topics
from mcp_app.server.invocation import InvocationPlaces
from mcp_app.server.question_places import QuestionPlaces
from mcp_app.server.request_state import StateSealer
from mcp_app.streams.questions import OpenQuestions
from mcp_app.streams.session_store import SessionStore
from mcp_app.streams.steps import StoredSteps


def call_log(worker: str, limits: Limits) -> CallLog | None:
    """Return the call log of a process; None if the setting `AUDIT` is "off"."""
    if mcp_settings.audit == "off":
        return None
    return CallLog(
        worker,
        most=limits.audit_buffer,
        key=derived_key(secrets()[0], "call arguments"),
        strict=mcp_settings.audit == "strict",
        strangers_rows=STRANGERS_ROWS if limits.rates else math.inf,
    )


def adapters(
    *,
    sessions: SessionStore,
    questions: OpenQuestions,
    rights: RightsCache,
    topics: Topics,
    threads: UserThreads,
    rates: Rates,
    audit: CallLog | None,
    halves_for_strangers: Callable[[], bool],
) -> Adapters:
    """Return the adapters that calls use; called in the loop's thread."""
    keys, loop = secrets(), asyncio.get_running_loop()
    limits = mcp_settings.limits
    mailbox = Mailbox(loop)
    around = tuple(import_string(path) for path in mcp_settings.call_context_managers)
    return Adapters(
        loop=loop,
        thread=threading.get_ident(),
        handshakes=sessions,
        sessions=sessions,
        questions=questions,
        places=QuestionPlaces(limits, threads.size),
        steps=StoredSteps(),
        users=UserRows(),
        rights=rights,
        topics=topics,
        post=mailbox.post,
        user_code=InvocationPlaces(mailbox, threads, around, halves_for_strangers),
        sealer=StateSealer(
            keys, age=limits.request_state_age, size=limits.request_state_size
        ),
        cursor_keys=[derived_key(each, "cursors") for each in keys],
        limits=limits,
        rates=rates,
        coerce=mcp_settings.coerce,
        audit=audit,
    )
