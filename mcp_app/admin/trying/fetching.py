"""An answer of another site, fetched for a call that nobody has saved yet."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from http.client import responses
from typing import Any, Final

from django.http import HttpRequest, QueryDict
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _

from mcp_app.admin.editors.site_call.answer_tree import parts_of_answer
from mcp_app.admin.forms.arguments import arguments_of
from mcp_app.admin.forms.http import Fetched
from mcp_app.admin.trying.pages import TryPage
from mcp_app.admin.trying.presentation import present_trial
from mcp_app.egress.requests import SiteAnswer
from mcp_app.interface.errors import ExternalError
from mcp_app.kinds import KindError
from mcp_app.kinds.http.config import HttpCall
from mcp_app.kinds.http.kind import OBSERVER, SUCCESS, configured_call
from mcp_app.kinds.http.request import content_of
from mcp_app.models import DefinitionRow
from mcp_app.process.background import run_on_loop
from mcp_app.workbench.trying.trial import Plan, Trial, run_trial

REALLY: Final = "fetch-really"
"""The box for a call that changes something; its value is the call."""
ONCE: Final = "fetch-once"
"""The input with the ticket, which lets such a call run once."""
UNNAMED: Final = "not-saved-yet"


def fetch_answer(request: HttpRequest, form: Any) -> Fetched:
    """Make the call that an unsaved form describes; blocks."""
    row: DefinitionRow = form.instance
    row.name = row.name or UNNAMED
    try:
        definition = form.row_definition().definition
        call = configured_call(definition, row.json("config") or {})
    except (KindError, ValueError) as error:
        return Fetched(problem=str(error))
    data = QueryDict(mutable=True)
    for each in arguments_of(definition).fields or ():
        sent = request.POST.getlist(each.name)
        data.setlist(each.name, sent if each.name in request.POST else [each.value])
    data["which"] = "working"
    # A user who may describe any call may see the answers of calls that only read.
    page = TryPage(request, row, data, is_fetch=True)
    data["once"] = page.next_ticket if call.only_reads else request.POST.get(ONCE, "")
    if request.POST.get(REALLY) == f"{call.method} {call.url}":
        data["really"] = page.page_context()["setup"].confirmation
    plan = page.checked_plan(lambda _line: None)
    context = page.page_context()
    fields = context["arguments"].fields or ()
    if plan is None:
        return Fetched(fields, context["problem"])
    trial, answer, content = run_on_loop(request, partial(_run_call, plan, call))
    shown, status = present_trial(trial, None), ""
    details = [_("%(ms)d ms") % {"ms": round(trial.took_ms)}]
    if answer is not None:
        status = f"{answer.status} {responses.get(answer.status, '')}".strip()
        details += [filesizeformat(len(answer.body)), answer.media_type]
    return Fetched(
        fields,
        problem=shown.sentence if trial.refused or trial.reason else "",
        status=status,
        details=[*filter(None, details)],
        shown=shown,
        parts=parts_of_answer(content),
    )


async def _run_call(plan: Plan, call: HttpCall) -> tuple[Trial, Any, object]:
    """Return the trial, the last answer of the site, and its whole JSON."""
    answers: list[SiteAnswer] = []
    token = OBSERVER.set(answers.append)
    try:
        trial = await run_trial(plan)
    finally:
        OBSERVER.reset(token)
    answer = answers[-1] if answers else None
    content: object = None
    if answer is not None and answer.status // 100 == SUCCESS:
        # The whole answer, without secrets from the settings.
        whole = replace(call, take="", keep=(), limit=None)
        with suppress(ExternalError):
            content = await content_of(whole, answer)
    return trial, answer, content
