"""A pytest plugin: a test that ends its worker costs that one test.

pytest-xdist 3.8 gives such a test to the next worker, and to the next; and it gives
others what is done already, for which they wait for ever.  After each test it counts
all that its worker has ever been given: of thousands of tests that is a third of what
its own process does.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadGroupScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController


class Scheduling(LoadGroupScheduling):  # type: ignore[misc]
    """Shares out what is left of a worker that is gone."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Return the test that a worker ran when it was gone, if it ran one."""
        work: dict[str, dict[str, bool]] = self.assigned_work.pop(node)
        left = [
            (unit, test)
            for unit in work.values()
            for test, done in unit.items()
            if not done
        ]
        if not left:
            return None
        unit, running = left[0]
        unit[running] = True
        for scope, each in work.items():
            if not all(each.values()):
                self.workqueue[scope] = each
        for other in self.assigned_work:
            self._reschedule(other)
        return running

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        """Forget what is done: a unit that is over is not counted again."""
        super().mark_test_complete(node, item_index, duration)
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(self.assigned_work[node][scope].values()):
            del self.assigned_work[node][scope]

    def schedule(self) -> None:
        """Give each worker what it runs, and what comes after that.

        A worker begins with a test when it knows the next, or that there is none.
        """
        super().schedule()
        for node in self.nodes:
            self._reschedule(node)

    def _reschedule(self, node: WorkerController) -> None:
        # One that has just begun does not know the tests yet.
        if node in self.registered_collections:
            super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        # One that has just ended is heard of soon, and what it was given is left then.
        with suppress(OSError):
            super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Producer
) -> Scheduling | None:
    """Take the place of `--dist loadgroup`."""
    return Scheduling(config, log) if config.option.dist == "loadgroup" else None
