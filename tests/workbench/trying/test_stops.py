"""What people have stopped stays stopped, in a dry run as well."""

from __future__ import annotations

import pytest

from mcp_app.interface.call_record import Outcome
from mcp_app.interface.principal import CONSOLE, Principal
from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import LATEST
from mcp_app.transports.in_process import Caller
from mcp_app.workbench.trying.trial import Plan, run_trial

URI = "test://static-text"


@pytest.mark.parametrize("is_dry", [False, True])
async def test_a_stopped_resource_is_not_read(process: Process, is_dry: bool) -> None:
    """A dry run has a catalog of its own, and offers nothing more in it."""
    await process.gate.wait_until_fresh(process.loop.time())
    catalog = process.catalogs.by_slug["default"]
    entry = catalog.resources[URI]
    off = catalog.with_changes({"resources": {URI: None}}, {"resources": {URI: entry}})
    servers = {**process.catalogs.by_slug, "default": off}
    nobody = Principal(kind=CONSOLE, client="ana", permissions=frozenset())
    caller = Caller(
        principal=nobody, person="u7", revision=LATEST, name="Try it", capabilities={}
    )
    plan = Plan(
        server="default",
        method="resources/read",
        params={"uri": URI},
        caller=caller,
        is_dry=is_dry,
    )
    with pytest.MonkeyPatch.context() as patched:
        # The next test begins with what this process has loaded.
        patched.setattr(process.catalogs, "by_slug", servers)
        trial = await run_trial(plan)
    assert "is switched off" in trial.error["message"]
    assert trial.outcome is Outcome.SWITCHED_OFF
