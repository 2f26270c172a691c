"""Calls that wait for a person, as staff and their callers read and decide them."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import pytest
from django.contrib.auth.models import Permission, User
from django.test import AsyncClient
from django.utils.html import strip_tags

from mcp_app.account.call_decisions import approve_call
from mcp_app.models import Task
from mcp_app.pools.database import writer
from mcp_app.server.approving import CHANGED
from tests.account.conftest import account
from tests.admin.pages import page, page_of, shown_values
from tests.admin.publishing.test_pages import tool
from tests.published import published
from tests.tasks.test_approval import TEXTS, People, _registry, people

__all__ = ["_registry", "people"]
HOME: Final = "/admin/mcp_app/"
LIST: Final = f"{page('task')}?status__exact=approval"
NOTE: Final = "<b>Paid</b>\N{RIGHT-TO-LEFT OVERRIDE} already. " + "x" * 2_000
ASKS: Final = "1 call waits for your approval"
SENTENCE: Final = "Pay 5⟦U+202E⟧ to ana"


async def staff(name: str, *rights: str) -> AsyncClient:
    """Log in a person, who is made if there is none, with these rights more."""

    def make_user() -> User:
        user, _new = User.objects.get_or_create(username=name)
        user.is_staff = True
        user.save()
        user.user_permissions.add(*Permission.objects.filter(codename__in=rights))
        return user

    client = AsyncClient()
    await client.aforce_login(await writer.run(make_user))
    return client


async def text_of(client: AsyncClient, url: str) -> str:
    answer = await client.get(url)
    assert answer.status_code == 200, url
    return answer.content.decode()


TOLD: Final = {
    "approve": "Approved. It runs now.",
    "deny": "Denied. Nothing has happened.",
}
LATE: Final = "Meanwhile, this call was decided, or is over."


@pytest.mark.parametrize("how", TOLD)
async def test_a_call_is_decided_on_its_page(people: People, how: str) -> None:
    kim = await staff("kim")
    call, task = await people.begin(note=NOTE)
    assert f"{ASKS}, for 0\N{NO-BREAK SPACE}minutes." in await text_of(kim, HOME)
    listed = await text_of(kim, LIST)
    assert SENTENCE in listed
    assert page_of(task) in listed
    text = await text_of(kim, page_of(task))
    start = "“&lt;b&gt;Paid&lt;/b&gt;⟦U+202E⟧ already. xxx"
    # Its beginning, and all of it.
    assert (text.count(start), text.count("x" * 2_000)) == (2, 1)
    words = " ".join(strip_tags(text.replace("<", " <")).split())
    asks = f"Who asks {people.ana.pk} the client calls itself “drill-client 1.0”"
    for part in ("Amount in EUR 5 note", "fee 0.5", f"{asks} Host localhost Tool pay"):
        assert part in words
    assert "AI model. The sentence above them comes from this site." in words
    form = {how: "1", "reason": "Ask the\ncustomer first"}
    done = await kim.post(page_of(task), form, follow=True)
    assert TOLD[how] in done.content.decode()
    await people.process.check_for_changes()
    assert (await call).text == TEXTS[how]
    await writer.run(partial(people.check_end, how, task))
    late = await kim.post(page_of(task), form, follow=True)
    assert LATE in late.content.decode()
    assert ASKS not in await text_of(kim, HOME)
    auditor = await staff("auditor", "view_task")
    shown = await text_of(auditor, page_of(task))
    assert "Decided by</th><td>kim<" in shown


async def test_who_may_not_decide_reads_and_moves_nothing(people: People) -> None:
    call, task = await people.begin(note="hush")
    both, view = ("approve_task", "add_user"), "view_task"
    without = {
        # The caller, who has all rights; without the tool's; without ours.
        await staff("ana", *both): 404,
        await staff("a", "approve_task"): 404,
        await staff("b", "add_user"): 404,
        await staff("c", view, "add_user"): "permission mcp_app.approve_task",
        await staff("d", view, "approve_task"): "permission auth.add_user",
    }
    for client, status in without.items():
        for form in ({"approve": "1"}, {"deny": "1"}):
            assert (await client.post(page_of(task), form)).status_code == 403
        answers = [await client.get(url) for url in (page_of(task), LIST, HOME)]
        text = answers[0].content.decode()
        assert answers[0].status_code == status or f"You need the {status}" in text
        pages = "".join(each.content.decode() for each in answers)
        for hidden in ("hush", SENTENCE, ASKS, 'name="approve"'):
            assert hidden not in pages
    gone = await staff("gone", *both)
    await User.objects.filter(username="gone").aupdate(is_active=False)
    answer = await gone.post(page_of(task), {"approve": "1"})
    assert "/login/" in answer["Location"]
    kim = await staff("kim")
    # Only the form decides, and nothing that a link can do.
    await text_of(kim, f"{page_of(task)}?approve=1")
    row: Any = await Task.objects.aget(pk=task.pk)
    assert (row.status, row.approver_id) == ("approval", None)
    await people.decide(approve_call, people.kim, task)
    await call


async def test_a_call_waits_as_staff_say_in_the_form(people: People) -> None:
    row = await writer.run(lambda: published(tool(tags="private")))
    kim = await staff("kim", "view_tool", "change_tool", "grant", "publish")

    async def say(approval: str) -> str:
        form = shown_values(await kim.get(page_of(row)))
        await kim.post(page_of(row), {**form, "approval": approval})
        compared = await kim.get(page_of(row, "publish"))
        done = await kim.post(page_of(row, "publish"), shown_values(compared))
        assert done.status_code == 302
        await people.process.check_for_changes()
        return " ".join(strip_tags(compared.content.decode()).split())

    assert (await (await people.client()).call(row.name)).text == "Nine to five."
    await say("other")
    assert "somebody must agree first" in await text_of(kim, page_of(row))
    for changes, text in ((False, "Nine to five."), (True, CHANGED)):
        call, task = await people.begin(row.name)
        if changes:
            assert "The person who calls, on this site" in await say("self")
        await people.decide(approve_call, people.kim, task)
        assert (await call).text == text
    await writer.run(row.delete)


@pytest.mark.parametrize("how", TOLD)
async def test_people_without_the_admin_confirm_their_own(
    people: People, how: str
) -> None:
    ana, kim, waits = AsyncClient(), await staff("kim"), "1 call waits for you"
    await ana.aforce_login(people.ana)
    call, task = await people.begin("confirm", note=NOTE)
    url, form = (
        account("call", task.pk),
        {how: "1", "reason": "Ask the\ncustomer first."},
    )
    assert f'<a href="{account("calls")}">{waits}</a>' in await text_of(
        ana, account("tokens")
    )
    assert f'<a href="{url}">' in await text_of(ana, account("calls"))
    # Neither a link nor a form without its button decides.
    await text_of(ana, f"{url}?approve=1")
    page = await ana.post(url, {"reason": "x"})
    assert "no-store" in page["Cache-Control"]
    assert "Amount in EUR 5 note" in " ".join(
        strip_tags(page.content.decode().replace("<", " <")).split()
    )
    # Who may approve, who is not logged in, and what another person decides.
    for client, status, code in (
        (kim, "confirmation", 404),
        (AsyncClient(), "confirmation", 302),
        (ana, "approval", 404),
    ):
        await Task.objects.filter(pk=task.pk).aupdate(status=status)
        for answer in (await client.get(url), await client.post(url, form)):
            assert answer.status_code == code
    assert url not in await text_of(ana, account("calls"))
    await Task.objects.filter(pk=task.pk).aupdate(status="confirmation")
    assert url not in await text_of(kim, account("calls"))
    assert TOLD[how] in (await ana.post(url, form, follow=True)).content.decode()
    await people.process.check_for_changes()
    assert (await call).text == TEXTS[how]
    assert (await Task.objects.aget(pk=task.pk)).approver_id == people.ana.pk
    again = await ana.post(url, form, follow=True)
    for late in (again, await ana.get(url, follow=True)):
        assert LATE in late.content.decode()
    assert waits not in await text_of(ana, account("tokens"))
