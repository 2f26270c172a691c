"""What the fleet opens, away from the check of modules that no app imports."""

from __future__ import annotations

import tests.fleet.data  # noqa: F401
