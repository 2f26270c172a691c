"""Bodies that are still coming: which are given up, and by whom."""

from __future__ import annotations

import asyncio
import time

import pytest

from mcp_app.process import uploads
from mcp_app.process.uploads import Uploads


class Uploading:
    """Bodies that never come to their end by themselves."""

    def __init__(self) -> None:
        self.uploads = Uploads(asyncio.get_running_loop())
        self.complete = asyncio.Event()

    async def begin(self, arrived: float = 0.0) -> asyncio.Task[str]:
        begun = asyncio.Event()
        task = asyncio.create_task(self._read(arrived, begun))
        await begun.wait()
        return task

    async def _read(self, arrived: float, begun: asyncio.Event) -> str:
        task = self.uploads.begin(arrived)
        begun.set()
        try:
            await self.complete.wait()
        except asyncio.CancelledError:
            if self.uploads.gave_up(task):
                return "given up"
            raise
        finally:
            self.uploads.end(task)
        return "read"


async def test_a_stop_gives_up_all_of_them() -> None:
    bodies = Uploading()
    tasks = [await bodies.begin(), await bodies.begin()]
    bodies.uploads.give_up()
    assert await asyncio.gather(*tasks) == ["given up", "given up"]


@pytest.mark.parametrize("arrived", [10.0, 11.0])
async def test_the_young_are_left_alone(arrived: float) -> None:
    bodies = Uploading()
    old, young = await bodies.begin(9.9), await bodies.begin(arrived)
    bodies.uploads.give_up(10.0)
    assert await old == "given up"
    bodies.complete.set()
    assert await young == "read"


async def test_what_was_read_is_given_up_no_more() -> None:
    bodies = Uploading()
    task = await bodies.begin()
    bodies.complete.set()
    assert await task == "read"
    bodies.uploads.give_up()
    assert not task.cancelling()


async def test_who_is_cancelled_by_others_is_not_given_up() -> None:
    bodies = Uploading()
    task = await bodies.begin()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_who_is_cancelled_by_others_as_well_goes() -> None:
    bodies = Uploading()
    task = await bodies.begin()
    bodies.uploads.give_up()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_one_timer_looks_for_all_as_long_as_there_are_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(uploads, "LOOK_EVERY", 0.001)
    now = time.monotonic()
    bodies = Uploading()
    young = await bodies.begin(now)
    timer = bodies.uploads._timer
    old = await bodies.begin(now - uploads.BODY_SECONDS)
    assert bodies.uploads._timer is timer
    assert await old == "given up"
    # The young one is looked for further.
    assert bodies.uploads._timer is not None
    bodies.complete.set()
    assert await young == "read"
    async with asyncio.timeout(60):
        while bodies.uploads._timer is not None:
            await asyncio.sleep(0.001)
