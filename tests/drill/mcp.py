"""Autodiscovered: registers the functions that the fixture rows name by their keys."""

from __future__ import annotations

import os
from importlib import import_module

from mcp_app import mcp
from tests.drill.functions import asking, drills, input_required, shop, telling

if os.environ.get("LEDGER"):
    # Each line that a tool enters would be a change.
    import_module("tests.drill.functions.ledger")

if os.environ.get("TASK_TOOLS"):
    import_module("tests.drill.functions.jobs")

if os.environ.get("APPS"):
    import_module("tests.drill.functions.apps")

if os.environ.get("SKILL_FOLDERS"):
    mcp.skills("skill_folders", prefix="code", tags=["folders"])

if os.environ.get("HAPPENINGS"):
    import_module("tests.drill.functions.happening")

if os.environ.get("NOISE"):
    import_module("tests.drill.functions.noise")

__all__ = ["asking", "drills", "input_required", "shop", "telling"]
