"""What may be open and run of one caller, and of all who have not signed in."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

import pytest

from mcp_app.conf import Limits
from mcp_app.interface.principal import Principal
from mcp_app.pools.turns import STRANGER, Owner
from mcp_app.process import quotas
from mcp_app.process.quotas import NoRoom, Queues, Quotas, Uploads
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.listeners import Listeners
from tests.serving import until

ANNA: Final = Principal(kind="user", user_id="1")
QUOTAS_NOBODY: Final = Principal.ANONYMOUS
NEAR: Final = "@203.0.113.7"
FAR: Final = "@198.51.100.7"


class Site:
    """The quotas of a process whose calls and streams are counted here."""

    def __init__(self, *, signs_in: bool = True, **limits: Any) -> None:
        self.calls: dict[str, int] = {}
        self.listeners = Listeners()
        running: Any = SimpleNamespace(
            call_count_of=lambda owner: self.calls.get(owner, 0)
        )
        catalogs: Any = SimpleNamespace(ask_to_sign_in=signs_in)
        self.quotas = Quotas(Limits(**limits), self.listeners, running, catalogs)

    def admits(self, principal: Principal, address: str = "", calls: int = 1) -> bool:
        try:
            self.quotas.check_share(principal, address, calls)
        except Unavailable as error:
            return error.http_status != 429
        return True

    def listens(self, principal: Principal, address: str = "") -> int:
        listener: Any = Listener(principal)
        try:
            self.quotas.check_streams(listener, address)
        except Unavailable as error:
            return error.http_status
        self.listeners.add(listener, address)
        return 200


class Listener:
    def __init__(self, principal: Principal) -> None:
        self.principal = principal
        self.owner = principal.owner
        self.session = ""


def test_running_calls_of_a_principal_and_of_an_address() -> None:
    site = Site(running_calls=3)
    site.calls = {ANNA.key: 2, NEAR: 3}
    assert site.admits(ANNA)
    assert not site.admits(ANNA, calls=2)
    assert not site.admits(QUOTAS_NOBODY, NEAR)
    assert site.admits(QUOTAS_NOBODY, FAR)
    # Whose address is not known shares no limit with others.
    assert site.admits(QUOTAS_NOBODY, "", calls=100)


def test_streams_of_an_address() -> None:
    site = Site(streams_per_principal=2)
    assert [site.listens(QUOTAS_NOBODY, NEAR) for _ in range(3)] == [200, 200, 429]
    assert site.listens(QUOTAS_NOBODY, FAR) == 200
    assert site.listens(ANNA) == 200
    for each in site.listeners:
        site.listeners.discard(each)
    assert site.listens(QUOTAS_NOBODY, NEAR) == 200


@pytest.mark.parametrize("signs_in", [True, False])
def test_t20_strangers_leave_half_of_the_streams_to_members(signs_in: bool) -> None:
    site = Site(signs_in=signs_in, streams_per_process=6)
    opened = [site.listens(QUOTAS_NOBODY) for _ in range(7)]
    assert opened == [200] * (3 if signs_in else 6) + [503] * (4 if signs_in else 1)
    assert site.listens(ANNA) == (200 if signs_in else 503)
    # Limits can be switched off.
    site = Site(rates=False, running_calls=1, streams_per_process=1)
    assert site.admits(ANNA, calls=10)
    assert [site.listens(QUOTAS_NOBODY, NEAR) for _ in range(3)] == [200] * 3


# -- queues ----------------------------------------------------------------------------


@dataclass(eq=False)
class Waiting:
    queues: Queues
    waiting: int = 0
    over: bool = False

    def change(self, size: int) -> None:
        self.waiting += size
        self.queues.count_bytes(self, size)

    def give_up(self) -> None:
        self.over = True
        self.change(-self.waiting)


@pytest.fixture
def queues() -> Queues:
    return Queues(100)


def test_t19_the_fullest_is_ended_first(queues: Queues) -> None:
    sent, small, full, newest = [Waiting(queues) for _ in range(4)]
    # What was sent counts no more.
    sent.change(90)
    sent.change(-90)
    small.change(20)
    full.change(50)
    newest.change(30)
    assert not full.over
    newest.change(1)
    assert [each.over for each in (small, full, newest)] == [False, True, False]
    newest.change(60)
    # Now it is the fullest itself.
    assert [each.over for each in (small, newest)] == [False, True]
    assert (queues._waiting, queues._filled) == (20, {small})


def test_t19_as_many_are_ended_as_it_takes(queues: Queues) -> None:
    many = [Waiting(queues) for _ in range(5)]
    for each in many:
        each.change(20)
    one_more = Waiting(queues)
    one_more.change(15)
    assert [each.over for each in many].count(True) == 1
    one_more.change(5 + 4 * 20)
    assert one_more.over
    assert queues._waiting == 80


# -- uploads ---------------------------------------------------------------------------


MOST: Final = 100
"""Bytes that bodies in pieces hold together."""
ANN, BEN, CAT = (Owner(name, stranger=False) for name in ("ann", "ben", "cat"))


class Upload:
    """A body in pieces, read by a task of its own, that ends when it is told to."""

    def __init__(self, all_of_them: Uploads, *, shy: bool = False) -> None:
        self.is_shy = shy
        self.pieces: asyncio.Queue[int] = asyncio.Queue()
        self.took = asyncio.Event()
        self.all = all_of_them
        self.task: asyncio.Task[str] | None = None

    async def begin(self, arrived: float = 0.0, owner: Owner = STRANGER) -> Upload:
        self.task = asyncio.create_task(self._read(arrived, owner))
        await self._progress()
        return self

    async def ends(self) -> str:
        return await (await self.grow(0)).outcome()

    async def grow(self, size: int) -> Upload:
        """Let it hold so many bytes; 0 is its end."""
        self.pieces.put_nowait(size)
        await self._progress()
        return self

    async def outcome(self) -> str:
        assert self.task is not None
        return await self.task

    async def _progress(self) -> None:
        assert self.task is not None
        waits = asyncio.create_task(self.took.wait())
        await asyncio.wait([waits, self.task], return_when=asyncio.FIRST_COMPLETED)
        waits.cancel()
        self.took.clear()

    async def _read(self, arrived: float, owner: Owner) -> str:
        task = self.all.begin_upload(arrived)
        own = partial(self.all.hold_body, owner=owner)
        hold = self.all.hold_in_room if self.is_shy else own
        try:
            self.took.set()
            while size := await self.pieces.get():
                hold(size)
                self.took.set()
        except asyncio.CancelledError:
            if self.all.was_cancelled_here(task):
                return "given up"
            raise
        except NoRoom:
            return "without room"
        finally:
            self.all.hold_body(0)
            self.all.end_upload(task)
        return "read"


@pytest.fixture
async def bodies() -> Uploads:
    return Uploads(asyncio.get_running_loop(), MOST)


async def test_a_stop_gives_up_all_that_were_not_read(bodies: Uploads) -> None:
    body = await Upload(bodies).begin()
    assert await body.ends() == "read"
    begun = [await Upload(bodies).begin(), await Upload(bodies).begin()]
    bodies.give_up_all()
    assert [await each.outcome() for each in begun] == ["given up", "given up"]
    assert body.task is not None
    assert not body.task.cancelling()


@pytest.mark.parametrize("given_up", [False, True])
async def test_who_is_cancelled_by_others_goes(bodies: Uploads, given_up: bool) -> None:
    body = await Upload(bodies).begin()
    if given_up:
        bodies.give_up_all()
    assert body.task is not None
    body.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await body.task


# -- time ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "seconds"), [(0, 10), (1, 10), (5 * 1024, 15), (2**22, 60)]
)
async def test_t19_a_body_has_ten_seconds_and_one_for_each_kib(
    size: int, seconds: float
) -> None:
    bodies, now = Uploads(asyncio.get_running_loop(), 2**30), time.monotonic()
    late = await Upload(bodies).begin(now - seconds - 1)
    early = await Upload(bodies).begin(now - seconds + 5)
    for each in (late, early):
        if size:
            await each.grow(size)
    bodies._cancel_overdue()
    assert await late.outcome() == "given up"
    assert await early.ends() == "read"


async def test_one_timer_looks_for_all_as_long_as_there_are_any(
    bodies: Uploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "LOOK_EVERY", 600)
    now = time.monotonic()
    young = await Upload(bodies).begin(now)
    timer = bodies._timer
    old = await Upload(bodies).begin(now - quotas.BODY_SECONDS)
    assert timer is not None
    assert bodies._timer is timer
    timer.cancel()
    monkeypatch.setattr(quotas, "LOOK_EVERY", 0.001)
    bodies._cancel_overdue()
    assert await old.outcome() == "given up"
    # The young one is looked for further.
    assert bodies._timer is not None
    assert await young.ends() == "read"
    await until(lambda: bodies._timer is None)


# -- room ------------------------------------------------------------------------


async def test_t19_the_body_whose_piece_is_oldest_makes_room(bodies: Uploads) -> None:
    first, second, third = [await Upload(bodies).begin() for _ in range(3)]
    for each in (first, second, third, first):
        await each.grow(30)
    # 90 bytes, and the last piece of the second is oldest now.
    newcomer = await Upload(bodies).begin()
    await newcomer.grow(20)
    assert await second.outcome() == "given up"
    await newcomer.grow(60)
    # 120 bytes are too many: one goes, and 90 are left.
    assert await third.outcome() == "given up"
    for each in (first, newcomer):
        assert await each.ends() == "read"
    assert (bodies._total_size, bodies._sizes, bodies._cancelled) == (0, {}, set())


async def test_t19_one_body_alone_has_all_that_a_body_may_have(bodies: Uploads) -> None:
    others = [await (await Upload(bodies).begin()).grow(40) for _ in range(2)]
    # One in one piece takes no room.
    whole = await Upload(bodies).begin()
    large = await (await Upload(bodies).begin()).grow(MOST + 1)
    assert [await each.outcome() for each in others] == ["given up", "given up"]
    await large.grow(2 * MOST)
    assert [await each.ends() for each in (whole, large)] == ["read", "read"]


async def test_t19_a_refused_request_drives_nobody_out(bodies: Uploads) -> None:
    honest = await (await Upload(bodies).begin()).grow(60)
    refused = await (await Upload(bodies, shy=True).begin()).grow(40)
    await refused.grow(41)
    assert await refused.outcome() == "without room"
    # What it had is free again.
    again = await (await Upload(bodies, shy=True).begin()).grow(40)
    # Others do not stop at it.
    await honest.grow(61)
    assert await again.outcome() == "given up"
    assert await honest.ends() == "read"


async def test_t19_strangers_send_eight_bodies_from_an_address(bodies: Uploads) -> None:
    near, far = (Owner(f"@203.0.113.{n}", stranger=True) for n in (7, 8))
    some = [await Upload(bodies).begin(owner=near) for _ in range(9)]
    for each in some[:8]:
        await each.grow(1)
        await each.grow(2)
    assert await (await some[8].grow(1)).outcome() == "without room"
    other, known = [await Upload(bodies).begin(owner=of) for of in (far, STRANGER)]
    await other.grow(1)
    await known.grow(1)
    # One that has ended makes room for another.
    assert await some[0].ends()
    ninth = await (await Upload(bodies).begin(owner=near)).grow(1)
    for each in (*some[1:8], other, known, ninth):
        assert await each.ends()
    assert not bodies._owners


async def test_t19_members_keep_the_room_that_strangers_want(bodies: Uploads) -> None:
    anna, near = Owner("u1", stranger=False), Owner("@203.0.113.7", stranger=True)
    hers = await (await Upload(bodies).begin(owner=anna)).grow(40)
    strange = [await Upload(bodies).begin(owner=near) for _ in range(3)]
    for each in strange:
        await each.grow(30)
    assert [await each.outcome() for each in strange[:1]] == ["given up"]
    assert await hers.ends() == "read"


async def test_t19_of_people_the_one_with_most_gives_way(bodies: Uploads) -> None:
    anna, bert = (Owner(f"u{n}", stranger=False) for n in (1, 2))
    first = await (await Upload(bodies).begin(owner=bert)).grow(20)
    hers = [await (await Upload(bodies).begin(owner=anna)).grow(45) for _ in range(2)]
    assert await hers[0].outcome() == "given up"
    assert await first.ends() == "read"


@pytest.mark.parametrize(
    ("waiting", "another", "has_room"),
    [
        ([], (ANN, 100), True),
        ([(ANN, 30)], (ANN, 20), True),
        ([(ANN, 30)], (ANN, 21), False),
        ([(ANN, 100)], (BEN, 40), True),
        ([(ANN, 40), (BEN, 40), (CAT, 10)], (CAT, 11), False),
        # Strangers are one.
        ([(Owner("@1", stranger=True), 40)], (Owner("@2", stranger=True), 11), False),
        ([(STRANGER, 50)], (ANN, 50), True),
        ([(STRANGER, 50), (ANN, 20)], (ANN, 30), True),
    ],
)
def test_t19_bodies_that_wait_to_be_read_are_counted(
    waiting: list[tuple[Owner, int]], another: tuple[Owner, int], has_room: bool
) -> None:
    loop = asyncio.new_event_loop()
    bodies = Uploads(loop, MOST)
    with ExitStack() as stack:
        for each in waiting:
            stack.enter_context(bodies.count_unread(*each))
        with nullcontext() if has_room else pytest.raises(NoRoom):
            stack.enter_context(bodies.count_unread(*another))
    assert not bodies._unread
    loop.close()
