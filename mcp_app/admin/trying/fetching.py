"""An answer of another site, fetched for a call that nobody has saved yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final

from django.http import HttpRequest, QueryDict
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _

from mcp_app.admin.editors.site_call.answer_tree import Part, parts_of_answer
from mcp_app.admin.page.result import ResultTable, result_table
from mcp_app.admin.trying.fields import Field
from mcp_app.admin.trying.pages import TryPage
from mcp_app.admin.trying.presentation import present_trial
from mcp_app.admin.trying.request import arguments_of
from mcp_app.egress.requests import SiteAnswer
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.errors import ExternalError
from mcp_app.interface.rules import visible
from mcp_app.kinds import KindError
from mcp_app.kinds.http.config import HttpCall
from mcp_app.kinds.http.kind import OBSERVER, SUCCESS, configured_call
from mcp_app.kinds.http.request import content_of
from mcp_app.models import DefinitionRow
from mcp_app.protocol import jsonrpc
from mcp_app.workbench.trying.trial import Trial, run_trial
from mcp_app.workbench.viewer import run_on_loop

REALLY: Final = "fetch-really"
"""The box for a call that changes something; its value is the call."""
ONCE: Final = "fetch-once"
UNNAMED: Final = "not-saved-yet"
MAX_TEXT: Final = 4_000


@dataclass(frozen=True, slots=True, repr=False)
class Fetched:
    """What came of a call, for the page; `parts` are those of a JSON answer."""

    fields: Sequence[Field] = ()
    problem: str = ""
    status: str = ""
    is_good: bool = False
    details: Sequence[str] = ()
    table: ResultTable | None = None
    text: str = ""
    parts: Sequence[Part] = ()


def fetch_answer(request: HttpRequest, form: Any) -> Fetched:
    """Call what a form describes that is not saved; blocks."""
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
    # Whoever may describe any call may see what those answer that only read.
    page = TryPage(request, row, data, may_read=True)
    data["once"] = page.next_ticket if call.only_reads else request.POST.get(ONCE, "")
    if request.POST.get(REALLY) == f"{call.method} {call.url}":
        data["really"] = page.page_context()["setup"].confirmation
    plan = page.checked_plan(lambda _line: None)
    shown = page.page_context()
    fields = shown["arguments"].fields or ()
    if plan is None:
        return Fetched(fields, shown["problem"])
    answers: list[SiteAnswer] = []

    async def run() -> tuple[Trial, object]:
        token = OBSERVER.set(answers.append)
        try:
            trial = await run_trial(plan)
        finally:
            OBSERVER.reset(token)
        return trial, await _whole_content(call, answers)

    trial, content = run_on_loop(request, run)
    return _present(fields, trial, answers, content)


async def _whole_content(call: HttpCall, answers: Sequence[SiteAnswer]) -> object:
    """Return all that a site has answered, without the secrets of the settings."""
    if not answers or answers[-1].status // 100 != SUCCESS:
        return None
    try:
        return await content_of(
            replace(call, take="", keep=(), limit=None), answers[-1]
        )
    except ExternalError:
        return None


def _present(
    fields: Sequence[Field],
    trial: Trial,
    answers: Sequence[SiteAnswer],
    content: object,
) -> Fetched:
    shown = present_trial(trial, None)
    text = next((each.text for each in shown.parts if each.kind == "text"), "")
    structured = trial.result.get("structuredContent")
    if structured is not None:
        text = visible(jsonrpc.pretty_text(structured), None)
    status, details = "", [_("%(ms)d ms") % {"ms": round(trial.took_ms)}]
    for answer in answers[-1:]:
        status = f"{answer.status} {_phrase_of(answer.status)}".strip()
        details += [filesizeformat(len(answer.body)), answer.media_type]
    return Fetched(
        fields,
        problem=shown.sentence if trial.refused or trial.reason else "",
        status=status or str(shown.label),
        is_good=trial.outcome is Outcome.ANSWERED and not trial.reason,
        details=[*filter(None, details)],
        table=result_table(structured),
        text=text[:MAX_TEXT],
        parts=parts_of_answer(content),
    )


def _phrase_of(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else ""
