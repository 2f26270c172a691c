"""Makes the tools of toolsets once, when the registry is first asked for tools.

If a toolset cannot be made, it is left out and a problem says why; others are served.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from importlib import import_module
from threading import RLock, Thread
from typing import Final

from django.db import connections
from django.utils import translation

from mcp_app.catalog.decorators import definition_problems
from mcp_app.catalog.findings import record_problem
from mcp_app.catalog.registered_function import DeclaredTool
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.server_lint import MANY_TOOLS
from mcp_app.catalog.toolset_options import Toolset
from mcp_app.interface.errors import RegistrationError, with_remedy
from mcp_app.interface.rules import name_problem
from mcp_app.kinds.kind import KindError

logger = logging.getLogger("mcp_app.toolsets")

DeclareTools = Callable[[Toolset, Registry], Iterable[DeclaredTool]]
"""The function `declare_tools`, which each module for one sort of toolset has.

It raises `RegistrationError` or `KindError` if it cannot make the tools.
"""
_lock: Final = RLock()
_begun: Final = set[Toolset]()
"""Toolsets that are made, or that the thread with the lock is making now."""


def make_toolsets(registry: Registry) -> None:
    """Make the tools of all toolsets that have none yet; other threads wait."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        _make_pending(registry)
        return
    # `declare_tools` may read rows, which Django refuses if the thread has a loop.
    thread = Thread(target=_make_in_thread, args=[registry])
    thread.start()
    thread.join()


def _make_in_thread(registry: Registry) -> None:
    try:
        _make_pending(registry)
    finally:
        connections.close_all()


def _make_pending(registry: Registry) -> None:
    with _lock:
        for key, toolset in [*registry.toolsets.items()]:
            if toolset not in _begun:
                # Add it first, because `declare_tools` may itself ask for tools.
                _begun.add(toolset)
                _make_tools(registry, toolset)
                registry.ready_toolsets[key] = toolset


def _make_tools(registry: Registry, toolset: Toolset) -> None:
    try:
        module = import_module(f"mcp_app.toolsets.{toolset.maker}")
        declare_tools: DeclareTools = module.declare_tools
        # Texts are for all clients, so the language of this request does not count.
        with translation.override(None):
            tools = [*declare_tools(toolset, registry)]
        for definition in (tool.definition for tool in tools):
            problems = [name_problem(definition.name), *definition_problems(definition)]
            if text := " ".join(filter(None, problems)):
                raise RegistrationError(text)
        registry.add_toolset(toolset, tools)
    except Exception as error:
        why = str(error)
        if not isinstance(error, RegistrationError | KindError):
            logger.exception("%s failed.", toolset.call)
            why = f"it stops with {type(error).__name__}: {error}".rstrip(".")
            why = f"{with_remedy(why, error)}."
        sentence = f"{toolset.call}: {why} None of its tools is served."
        record_problem(registry.toolset_problems, toolset.origin.place, sentence)
        return
    if len(tools) > MANY_TOOLS:
        sentence = (
            f"{toolset.call} makes {len(tools)} tools, and models choose worse from"
            f" more than {MANY_TOOLS}. Choose some, as in only=[…], or let clients of"
            " the server search."
        )
        record_problem(registry.toolset_remarks, toolset.origin.place, sentence)
