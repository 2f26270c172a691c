"""Calls that wait for a person, as clients and those who decide meet them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, Any, Final

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core import mail
from django.core.exceptions import PermissionDenied
from pydantic import Field

from mcp_app import Approval, RegistrationError, test
from mcp_app.account.call_decisions import CallDecided, approve_call, deny_call
from mcp_app.catalog.registry import Registry
from mcp_app.conf import Limits
from mcp_app.models import Task
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.tasks import read_json
from mcp_app.server.approving import CHANGED, NOBODY_TO_ASK, SIGN_IN
from mcp_app.streams.tasks import lapse_calls
from tests.asgi_client import Client, JsonObject
from tests.audit.reading import kept
from tests.scripting import STATEFUL, STATELESS, TAG, Play
from tests.serving import Connect, until
from tests.tasks.conftest import TAKES_TASKS, TaskClient

DAY_MS: Final = 86_400_000
CANARY: Final = "canary 8d1f"
WAITS: Final = "It waits until another person approves it on this site."
TOLD: Final = (
    f"Nothing has happened yet. {WAITS} Tell the user. Later, call get_task_result with"
    " task='{task}' to get the result. Do not call the tool again."
)
TEXTS: Final = {
    "approve": "Paid 5.",
    "deny": "A person denied this call. Nothing has happened. Ask the customer first."
    " Do not try it again unless the user asks.",
    "lapse": "Nobody decided within 24 hours. Nothing has happened.",
    "withdraw": "The task was cancelled.",
}
BRIEF: Final = {"LIMITS": {"task_wait": 0.2, "approvals_per_person": 3}}
OFF: Final = {"DISABLED_TOOLS": ["get_task_result"], "STATE_KEYS": ["k" * 50]}

runs: list[int] = []


def is_large(arguments: Any, user: Any) -> Any:
    # It is rolled back, and only False counts.
    User.objects.update(first_name="was asked")
    return None if arguments["amount"] * arguments["fee"] > 50 else False


def describe(arguments: Any, user: Any) -> str:
    return f"Pay {arguments['amount']}\N{RIGHT-TO-LEFT OVERRIDE}\nto {user.username}"


def pay(
    amount: Annotated[int, Field(title="Amount in EUR")],
    note: str = "",
    fee: float = 0.5,
) -> str:
    runs.append(amount)
    return f"Paid {amount}."


def made_registry() -> Registry:
    registry, tags = Registry(), [TAG, "shown"]
    checked = Approval(by="other", describe=describe, permission="auth.add_user")
    registry.tool("pay", approval=checked, tags=tags)(pay)
    registry.tool("confirm", approval="self", tags=tags)(pay)
    large = Approval(by="other", when=is_large)
    registry.tool("large", approval=large, tags=tags)(pay)
    return registry


@pytest.fixture(autouse=True)
def _registry(scripted_tasks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.behaviours.registry", made_registry())
    runs.clear()


class People:
    """Ana calls; kim may decide for others."""

    def __init__(self, connect: Connect, process: Process) -> None:
        self.connect, self.process = connect, process
        self.ana, self.kim = (User.objects.create_user(each) for each in ("ana", "kim"))
        names = ("approve_task", "add_user")
        self.rights = list(Permission.objects.filter(codename__in=names))
        self.kim.user_permissions.set(self.rights)

    async def client(
        self, version: str = STATELESS, host: str = "localhost", **options: Any
    ) -> Client:
        headers = {"x-user": str(self.ana.pk), "host": host}
        path = "/mcp/private"
        return await self.connect(version, path=path, headers=headers, **options)

    async def begin(self, tool: str = "pay", **more: Any) -> tuple[Any, Task]:
        """Call a tool; return its answer to come, and the task that waits."""
        client = more.pop("client", None) or await self.client()
        call = asyncio.ensure_future(client.call(tool, amount=5, **more))
        return call, await self.waiting()

    async def waiting(self) -> Task:
        waits = Task.objects.filter(status__in=("approval", "confirmation"))
        async with asyncio.timeout(60):
            while (task := await waits.afirst()) is None:
                await asyncio.sleep(0.005)
        return task

    async def decide(self, do: Callable[..., object], *more: Any) -> None:
        await writer.run(partial(do, *more))
        await self.process.check_for_changes()

    def end(self, how: str, task: Task) -> None:
        if how == "approve":
            approve_call(self.kim, task)
        elif how == "deny":
            deny_call(self.kim, task, "Ask the\ncustomer first.")
        elif how == "withdraw":
            assert Task.objects.cancel(task.pk, "")
        else:
            assert lapse_calls(Limits()) is None
            Task.objects.filter(pk=task.pk).update(created_ms=task.created_ms - DAY_MS)
            with pytest.raises(CallDecided):
                approve_call(self.kim, task)
            assert lapse_calls(Limits()) == 1

    def check_end(self, how: str, task: Task) -> None:
        row = Task.objects.get(pk=task.pk)
        assert (row.arguments, row.state, row.call_digest) == ("", "", None)
        assert row.approver_id == (self.kim.pk if how in ("approve", "deny") else None)
        assert runs == ([5] if how == "approve" else [])
        for late in (task, row):
            with pytest.raises(CallDecided):
                approve_call(self.kim, late)


@pytest.fixture
async def people(connect: Connect, process: Process) -> AsyncIterator[People]:
    yield await writer.run(partial(People, connect, process))
    for model in (LogEntry, User):
        await writer.run(model.objects.all().delete)


@pytest.mark.parametrize("version", [STATELESS, STATEFUL])
@pytest.mark.parametrize("how", TEXTS)
@pytest.mark.parametrize("mcp", [{}, BRIEF], ids=["soon", "late"])
async def test_clients_without_tasks(
    people: People, version: str, how: str, mcp: JsonObject
) -> None:
    client = await people.client(version)
    call, task = await people.begin(client=client)
    if mcp:
        told = await call
        assert "isError" not in told.result
        assert told.text == TOLD.format(task=task.public_id)
        fetch = client.call("get_task_result", task=task.public_id, wait=50)
        call = asyncio.ensure_future(fetch)
    await people.decide(people.end, how, task)
    answer = await call
    fails = answer.result.get("isError", False)
    assert (answer.text, fails) == (TEXTS[how], how != "approve")
    await people.decide(people.check_end, how, task)


@pytest.mark.parametrize("version", [STATELESS, STATEFUL])
@pytest.mark.parametrize("how", TEXTS)
async def test_clients_with_tasks(people: People, version: str, how: str) -> None:
    is_late = version == STATELESS
    client = await people.client(version, capabilities=TAKES_TASKS if is_late else None)
    each = TaskClient(client, Play(people.connect))
    call = {"name": "pay", "arguments": {"amount": 5}, "task": {"ttl": 60_000}}
    begun = (await client.request("tools/call", call)).result
    begun = begun.get("task", begun)
    assert (begun["status"], begun["statusMessage"]) == ("working", WAITS)
    assert begun["ttlMs" if is_late else "ttl"] == 2 * DAY_MS
    task = await people.waiting()
    if how == "withdraw":
        await each.ask("cancel", task.public_id)
    else:
        await people.decide(people.end, how, task)
    found = await each.until(task.public_id)
    ends = "completed" if is_late or how == "approve" else "failed"
    assert found["status"] == ("cancelled" if how == "withdraw" else ends)
    if how != "withdraw":
        asked = (
            found.get("result") or (await each.ask("result", begun["taskId"])).result
        )
        assert asked["content"][0]["text"] == TEXTS[how]
    await people.decide(people.check_end, how, task)


async def test_who_may_decide(people: People) -> None:
    call, task = await people.begin()

    def refuse_all() -> None:
        users = {each: User.objects.create_user(each) for each in ("a", "b", "gone")}
        for name, right in zip("ab", people.rights, strict=True):
            users[name].user_permissions.set([right])
        User.objects.filter(username="gone").update(is_active=False)
        for user in (people.ana, users["gone"]):
            user.user_permissions.set(people.rights)
        # Who tries a tool as somebody else calls it, too.
        known = {"pk": task.pk, "caller": task.caller, "state": task.state}
        tried = Task(**known, status="approval", person=f"u{people.kim.pk}")
        cases = [(user, task) for user in (people.ana, *users.values())]
        confirmed = Task(**known, status="confirmation")
        for user, each in (*cases, (people.kim, tried), (people.kim, confirmed)):
            for do in (approve_call, deny_call):
                with pytest.raises(PermissionDenied):
                    do(User.objects.get(pk=user.pk), each)

    await writer.run(refuse_all)
    assert (await people.waiting()).status == "approval"
    assert not await LogEntry.objects.aexists()
    await people.decide(Task.objects.cancel, task.pk, "")
    await call
    call, task = await people.begin("confirm")
    await people.decide(approve_call, people.ana, task)
    assert (await call).text == "Paid 5."


@pytest.mark.databases
async def test_the_same_call_is_the_same_task(people: People) -> None:
    clients = [await people.client(each) for each in (STATELESS, STATEFUL)]
    calls = [asyncio.ensure_future(each.call("pay", amount=5)) for each in clients * 2]
    task = await people.waiting()
    waiters = people.process.tasks._changes._waiters
    await until(lambda: len(waiters.get(task.pk, ())) == 4)
    await people.decide(approve_call, people.kim, task)
    assert [(await each).text for each in calls] == ["Paid 5."] * 4
    # It is over, so the next one is another.
    call, task = await people.begin()
    await people.decide(approve_call, people.kim, task)
    await call
    assert (runs, await Task.objects.acount()) == ([5, 5], 2)


@pytest.mark.parametrize("mcp", [BRIEF])
async def test_a_call_at_another_address_is_another_task(people: People) -> None:
    # Sites tell their tenants apart by the host.
    for host in ("localhost", "127.0.0.1", "localhost"):
        await (await people.client(host=host)).call("pay", amount=5)
    assert await Task.objects.acount() == 2


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("version", 2, CHANGED),
        # Processes that began before have not heard of the empty row of a tool of code.
        ("key", ("tool", "0"), TEXTS["approve"]),
    ],
)
async def test_another_version_of_the_tool_does_not_run(
    people: People, monkeypatch: Any, name: str, value: object, text: str
) -> None:
    call, task = await people.begin()
    tool = people.process.catalogs.by_slug["private"].tools["pay"]
    monkeypatch.setattr(tool, name, value)
    await people.decide(approve_call, people.kim, task)
    assert ((await call).text, runs) == (text, [] if text == CHANGED else [5])


async def test_what_needs_no_decision_runs(people: People, connect: Connect) -> None:
    stranger = await connect(STATELESS, path="/mcp/tagged")
    for client in (await people.client(), stranger):
        assert (await client.call("large", amount=5)).text == "Paid 5."
    assert (await stranger.call("large", amount=500)).text == SIGN_IN
    assert (await stranger.call("pay", amount=5)).text == SIGN_IN
    await people.ana.arefresh_from_db()
    assert (people.ana.first_name, runs) == ("", [5, 5])


@pytest.mark.parametrize("mcp", [BRIEF])
async def test_a_person_waits_for_so_many(people: People) -> None:
    client = await people.client()
    texts = [(await client.call("pay", amount=each)).text for each in range(4)]
    assert [text[:15] for text in texts] == ["Nothing has hap"] * 3 + [
        "3 of your calls"
    ]
    large = await client.call("pay", amount=4, note="x" * 65_536)
    assert "and 65536 are allowed" in large.text
    assert await Task.objects.acount() == 3


def tables_with(text: str) -> list[str]:
    rows = {each.__name__: [*each._base_manager.values()] for each in apps.get_models()}
    return [name for name, found in rows.items() if text in str(found)]


async def test_values_stand_nowhere(people: People, caplog: Any) -> None:
    caplog.set_level("DEBUG")
    for how in TEXTS:
        call, task = await people.begin(note=CANARY)
        assert await writer.run(tables_with, CANARY) == ["Task"]
        sentence = read_json(task.state)["approval"]["text"]
        assert sentence == "Pay 5⟦U+202E⟧ to ana"
        await people.decide(people.end, how, task)
        await call
    calls = [each for each in await kept(people.process) if each.name == "pay"]
    tasks = [row async for row in Task.objects.order_by("pk")]
    entries = [entry async for entry in LogEntry.objects.order_by("pk")]
    one, two, *_ = (f"t:{row.public_id[:14]}" for row in tasks)
    told = sorted((each.outcome, each.error, each.session) for each in calls)
    waited = ("task", "Waits for approval", "")
    assert told == [("answered", "", one), *[waited] * 4]
    assert [entry.change_message for entry in entries] == [
        f"Approved this call (pay, {one}).",
        f"Denied this call (pay, {two}).",
    ]
    assert await writer.run(tables_with, CANARY) == []
    assert CANARY not in caplog.text
    assert mail.outbox == []


@pytest.mark.parametrize("mcp", [OFF])
async def test_where_nobody_can_be_asked_nothing_runs(people: People) -> None:
    answer = await (await people.client()).call("pay", amount=5)
    assert (answer.text, answer.result["isError"]) == (NOBODY_TO_ASK, True)
    assert runs == []


@pytest.mark.django_db
def test_the_client_of_tests_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test.Client, "_registry", made_registry())
    user = User.objects.create_user("ana")
    with pytest.raises(test.ToolFailed, match="nobody can be asked here"):
        test.Client(user).call("pay", amount=5)
    assert test.Client(user, approved=True).call("pay", amount=5).text == "Paid 5."


async def _wait(arguments: Any, user: Any) -> Any:
    """Be no plain function."""


def test_what_is_refused_in_code() -> None:
    wrong: dict[str, Any] = {
        "approval is 'client': it must be 'self' or 'other'": "client",
        "by is 'staff': it must be one of": Approval(by="staff"),  # type: ignore[arg-type]
        "is async: it must be a plain": Approval(by="other", describe=_wait),  # type: ignore[arg-type]
        "must take the arguments and the user": Approval(by="other", when=len),  # type: ignore[arg-type]
        "“refund” is not a permission": Approval(by="other", permission="refund"),
    }
    for problem, approval in wrong.items():
        with pytest.raises(RegistrationError, match=problem):
            Registry().tool("pay", approval=approval)(pay)
