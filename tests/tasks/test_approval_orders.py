"""Calls that wait for a person, while all else happens in random orders."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any, Final

import pytest
from django.utils.timezone import now

from mcp_app.account.call_decisions import CallDecided, deny_call
from mcp_app.catalog.stops import SWITCHED_OFF
from mcp_app.conf import BY_TOKEN
from mcp_app.models import AccessToken, Server, Stop, Task
from mcp_app.models.stops import By, Scope
from mcp_app.pools.database import writer
from mcp_app.process.stored_calls import LOST_ACCESS
from mcp_app.protocol.tasks import read_json
from mcp_app.server.approving import CHANGED
from tests.asgi_client import Client
from tests.marks import long_cases
from tests.published import published
from tests.scripting import STATELESS
from tests.serving import Connect
from tests.tasks.conftest import TAKES_TASKS
from tests.tasks.test_approval import TEXTS, People, _registry, people, runs

__all__ = ["_registry", "people"]
OFF: Final = SWITCHED_OFF.format(what="tool")
STEPS: Final = {
    **{"ask": 6, "approve": 6, "run": 4, "deny": 1, "withdraw": 1, "lapse": 1},
    **{"publish": 1, "user": 1, "token": 1, "stop": 1},
}
"""What happens in random orders, and how often."""


class Orders:
    """What happens in random orders, and what becomes of Ana's calls in them."""

    def __init__(self, people: People) -> None:
        self.people, self.process = people, people.process
        self.chance = random.Random(7)  # noqa: S311 - no secret
        row, secret = AccessToken.objects.make(user=people.ana, name="a", may="change")
        self.token, self.headers = row, {"authorization": f"Bearer {secret}"}
        self.away, self.foreseen, self.seen = set[str](), dict[int, str](), set[str]()
        self.versions, self.paid = dict[int, int](), Counter[int]()

    @property
    def tool(self) -> Any:
        catalog = self.process.catalogs.by_slug["handed"]
        return catalog.tools.get("pay") or catalog.switched_off("tools", "pay")

    async def ask(self, client: Client) -> None:
        answer = await client.call("pay", amount=self.chance.randint(1, 2))
        begins = answer.status == 200 and "taskId" in answer.result
        assert begins is not bool(self.away)
        if begins:
            row = await Task.objects.aget(public_id=answer.result["taskId"])
            self.versions.setdefault(row.pk, self.tool.version)

    def flip(self, what: str) -> None:
        """Take something away from Ana, or give it back."""
        self.away ^= {what}
        is_away = what in self.away
        if what == "user":
            self.people.ana.is_active = not is_away
            self.people.ana.save()
        elif what == "token":
            self.token.revoked = now() if is_away else None
            self.token.save()
        elif is_away:
            Stop.objects.make(Scope.CHANGES, by=By("kim"))
        else:
            Stop.objects.end([each.pk for each in Stop.objects.on()], by=By("kim"))

    def decide(self, how: str) -> None:
        """Let that happen to any call that has not ended."""
        task = self.chance.choice(list(Task.objects.filter(ended_ms=None)) or [None])
        waits = task is not None and task.status == "approval"
        if task is not None and (waits or how == "withdraw"):
            self.people.end(how, task)
            self.foreseen[task.pk] = TEXTS[how]
        elif task is not None:
            with pytest.raises(CallDecided):
                deny_call(self.people.kim, task)

    async def run(self) -> None:
        """Run what is approved; foresee how each ends."""
        async for task in Task.objects.filter(status="working"):
            amount, text = read_json(task.arguments)["amount"], CHANGED
            if self.away:
                text = OFF if self.away == {"stop"} else LOST_ACCESS
            elif self.versions[task.pk] == self.tool.version:
                text = f"Paid {amount}."
                self.paid[amount] += 1
            self.foreseen[task.pk] = text
        self.process.offer_places()
        self.process.tasks.claim_soon()
        async with asyncio.timeout(60):
            while await Task.objects.filter(status="working").aexists():
                await asyncio.sleep(0.001)
        self.process.tasks.offer_places(0)
        async for task in Task.objects.exclude(ended_ms=None):
            result = read_json(task.result or "{}")
            text = result["content"][0]["text"] if result else task.message
            assert (text or TEXTS["withdraw"]) == self.foreseen[task.pk]
            self.seen.add(self.foreseen[task.pk])


@pytest.mark.parametrize("mcp", [{"AUTHENTICATION": BY_TOKEN}])
@pytest.mark.parametrize("orders", [200, *long_cases(2_000)])
async def test_nothing_runs_without_a_fresh_decision(
    people: People, connect: Connect, orders: int
) -> None:
    """Whatever happens, in whatever order, nothing runs but what is foreseen."""
    server = Server(slug="handed", access="token", selection="tags", tags="shown")
    await people.decide(published, server)
    world = await writer.run(Orders, people)
    options = {"path": "/mcp/handed", "headers": world.headers}
    client = await connect(STATELESS, **options, capabilities=TAKES_TASKS)
    people.process.tasks.offer_places(0)
    for _ in range(orders):
        for step in (*world.chance.choices([*STEPS], [*STEPS.values()], k=5), "run"):
            if step == "ask":
                await world.ask(client)
            elif step == "run":
                await world.run()
            elif step == "publish":
                world.tool.version += 1
            elif step in TEXTS:
                await people.decide(world.decide, step)
            else:
                await people.decide(world.flip, step)
            assert Counter(runs) == world.paid
        for step in [*world.away]:
            await people.decide(world.flip, step)
        await writer.run(Task.objects.all().delete)
    ends = {"Paid 1.", "Paid 2.", *TEXTS.values(), CHANGED, LOST_ACCESS, OFF}
    assert world.seen == ends - {TEXTS["approve"]}
    await people.decide(server.delete)
