"""What the page *Try it* of a definition shows, and what it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from mcp_app.admin.calls.values import values_to_try
from mcp_app.admin.editors.schema_fields import Unreadable
from mcp_app.admin.forms.arguments import (
    Arguments,
    arguments_of,
    request_of,
    with_errors,
    with_values,
)
from mcp_app.admin.forms.definition import written_text
from mcp_app.admin.page.header import page_url
from mcp_app.admin.page.rights import has_right, whom_to_ask
from mcp_app.admin.trying import answers, examples, presentation, preview, wire
from mcp_app.admin.trying.setup import Refusal, Setup, has_unpublished_changes, lets_in
from mcp_app.auth.resources import server_url
from mcp_app.catalog.registered_function import ReadyFunction
from mcp_app.catalog.registry import mcp
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.definitions import Definition, EventDefinition, ToolDefinition
from mcp_app.interface.rules import visible
from mcp_app.kinds import Effect, KindError, usable_kinds
from mcp_app.models import DefinitionRow, Example
from mcp_app.models.tokens import Secret
from mcp_app.process.background import Unsuitable, run_on_loop
from mcp_app.protocol.headers import MirroredParameter, mirrored_parameters
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.skills import SKILL_FILE
from mcp_app.publishing.overlays import declaration_of, whole_definition
from mcp_app.site_time import time_text
from mcp_app.streams.tasks import load_tasks
from mcp_app.workbench.trying.attempts import As
from mcp_app.workbench.trying.offer import TriedRow, WorkingCopy, servers_for
from mcp_app.workbench.trying.tickets import NoTicket, claim_ticket, new_ticket
from mcp_app.workbench.trying.trial import Plan, Trial, is_rejected, run_trial

WORKING, PUBLISHED = "working", "published"
VERSIONS_INPUT: Final = "seen"
"""The input that names the versions which the page showed."""
ANSWER: Final = "answer"
"""The buttons that answer a question; the value is the action."""


class TryPage:
    """One request of the page: the choices of the user, and the result."""

    _preview: preview.Preview | None = None

    def __init__(
        self,
        request: HttpRequest,
        row: DefinitionRow,
        data: QueryDict | None,
        *,
        is_fetch: bool = False,
    ) -> None:
        """Read the data of the form, if any; `is_fetch` is as in `Setup`."""
        self._request = request
        self._row = row
        self._data = QueryDict() if data is None else data
        self._has_published = row.published is not None or row.from_code
        which = self._data.get("which")
        is_chosen = has_unpublished_changes(row) if which is None else which == WORKING
        self._is_working = is_chosen or not self._has_published
        self._content = row.working_content() if self._is_working else {}
        if not self._is_working and row.published is not None:
            self._content = row.published.read()
        self._definition = whole_definition(row, self._content, mcp)
        self._arguments: Arguments | None = None
        self._setup: Setup | None = None
        self.problem = ""
        self._is_setup_wrong = False
        self._trial: Trial | None = None
        # Until something is run, the questions of the page are still open.
        self._forms: Sequence[answers.Form] = [
            answers.question_form(each, data)
            for each in answers.read_questions(self._data)
        ]
        self._results: dict[str, JsonObject] = {}
        self._notice = ""
        key = (request.GET if data is None else self._data).get(examples.EXAMPLE, "")
        self._example = (
            examples.find_example(row, key) if has_right(request, "try") else None
        )
        if self._definition is not None:
            self._arguments = arguments_of(
                self._definition, data, _paths_of_skill(row, self._content)
            )
            if self._example is not None:
                values = self._example.read()
                self._arguments = with_values(self._arguments, values)
            elif data is None and (values := values_to_try(request, row)):
                self._arguments = with_values(self._arguments, values)
            self._setup = self._create_setup(self._definition, is_fetch)

    def _create_setup(self, definition: Definition, is_fetch: bool) -> Setup:
        kind = changes = None
        # A published version may have another kind.
        if not self._row.from_code:
            kind = usable_kinds(mcp).get(str(self._content.get("kind", "text")))
        if kind is not None:
            config = self._content.get("config") or {}
            # If the call is impossible, the run reports the error.
            with suppress(KindError):
                changes = kind.changes_elsewhere(definition, config)
        effect = Effect.DATABASE if kind is None else kind.effect
        if isinstance(definition, EventDefinition):
            effect = Effect.NOTHING
        return Setup(
            request=self._request,
            row=self._row,
            definition=definition,
            effect=effect,
            servers=servers_for(self._row, partial(lets_in, self._request)),
            is_working_copy=self._is_working,
            changes_elsewhere=changes,
            data=self._data,
            is_fetch=is_fetch,
        )

    # -- a button was pressed ------------------------------------------------------

    def run(self, log: Callable[[str], object]) -> HttpResponseBase | None:
        """Run what the form describes; return a stream of lines if the page wants one.

        After starting a task, redirect to its page.  Two buttons run nothing: they keep
        the values as an example, or remove one.  `log` is as in `checked_plan`.
        """
        if examples.KEEP in self._data or examples.REMOVE in self._data:
            self._change_examples(log)
            return None
        plan = self.checked_plan(log)
        if plan is None:
            return None
        try:
            if (app := getattr(self._definition, "app", "")) and self._setup:
                values = plan.params["arguments"]
                self._preview = preview.Preview(self._setup, app, values)
            if presentation.is_wanted(self._request) and not plan.is_task:
                return presentation.streaming_response(
                    presentation.TrialLines(plan, self.next_ticket, self._result_part)
                )
            trial = run_on_loop(self._request, partial(run_trial, plan))
        except Unsuitable as error:
            self.problem = str(error)
            return None
        if task_id := trial.task_id:
            key = load_tasks([task_id])[task_id].pk
            return redirect("admin:mcp_app_task_change", key)
        self.take_result(trial)
        return None

    def read_app(self) -> HttpResponse:
        """Return the page that shows what a tool answers; raises `Http404`."""
        if (app := getattr(self._definition, "app", "")) and self._setup:
            return preview.read_page(self._setup, app)
        raise Http404

    def _result_part(self, trial: Trial) -> presentation.JsonPart:
        """Return the part of the page with the result; asks no database."""
        self.take_result(trial)
        context = {"opts": self._row._meta, **self.result_context()}
        name = "admin/mcp_app/includes/try_result.html"
        return {"html": render_to_string(name, context)}

    def checked_plan(self, log: Callable[[str], object]) -> Plan | None:
        """Return the plan that the form describes; None if it must not run.

        `log` writes a line of the row's history.
        """
        setup = self._setup
        if self._definition is None or setup is None:
            return None
        try:
            if self._is_working and self._data.get("which") == PUBLISHED:
                raise Refusal(_("It is not published any more, so nothing was run."))
            values = {} if self._arguments is None else self._arguments.parsed_values
            plan = self._build_plan(self._definition, setup, values)
            setup.check_choices()
            self._check_versions(setup)
            self._claim_run(setup)
        except Refusal as refused:
            self.problem, self._is_setup_wrong = str(refused), True
            return None
        except (answers.WrongAnswers, Unreadable, ValueError) as error:
            if isinstance(error, answers.WrongAnswers):
                self._forms = error.forms
            elif self._arguments is not None:
                self._arguments = with_errors(self._arguments, error)
            self.problem = _("Correct what is marked. Nothing was run.")
            return None
        if setup.who_choice is As.USER:
            # Log the attempt before the run, whatever the result.
            log(_("Tried it as %(name)s.") % {"name": visible(setup.person_name)})
        return plan

    def _change_examples(self, log: Callable[[str], object]) -> None:
        if self._arguments is None:
            return
        row, data = self._row, self._data
        try:
            self._notice = examples.change_examples(row, data, self._arguments)
        except (Unreadable, ValueError) as error:
            if not isinstance(error, examples.NotKept):
                self._arguments = with_errors(self._arguments, error)
                error = ValueError(_("Correct what is marked. Nothing was kept."))
            self.problem = str(error)
        else:
            log(self._notice)

    def example_plan(self, example: Example) -> Plan | None:
        """Return the plan of an automatic run; None if it may do more than read here.

        Raises `Refusal`, and ValueError if the values no longer fit.
        """
        setup = self._setup
        if self._definition is None or setup is None:
            raise Refusal(_("It cannot run."))
        if setup.effect is Effect.ELSEWHERE or not setup.only_reads:
            return None
        setup.check_choices()
        return self._build_plan(self._definition, setup, example.read())

    def _check_versions(self, setup: Setup) -> None:
        """Raise `Refusal` if a real run would use a version that was not shown."""
        versions = self._data.get(VERSIONS_INPUT, "")
        if not versions or setup.is_dry or setup.only_reads:
            return
        # Index 0 (False) is the published version, 1 the working copy.
        if self._version_names[self._is_working] not in versions.split():
            sentence = _(
                "It was changed since this page was opened, so nothing was run."
                " Look at it, and press the button again."
            )
            raise Refusal(sentence)

    @property
    def _version_names(self) -> tuple[str, str]:
        """Identifiers of the published version and of the working copy."""
        row = self._row
        return f"published-{row.published_id}", f"working-{row.content_hash}"

    def take_result(self, trial: Trial) -> None:
        """Store the result of the trial, and the questions that it asks."""
        self._trial = trial
        if self._preview is not None:
            self._preview.shown["result"] = trial.result
        self._forms = [answers.question_form(question) for question in trial.questions]

    def _build_plan(
        self, definition: Definition, setup: Setup, values: JsonObject
    ) -> Plan:
        method, params = request_of(definition, values)
        setup.check_server()
        row = self._row
        if setup.is_task and setup.chosen_revision.task_requests:
            params = {**params, "task": {}}
        # Even a dry run may change something outside the databases: ask for the right.
        approved = setup.is_dry and has_right(self._request, "approve_task")
        return Plan(
            server=setup.server_slug,
            method=method,
            params={**params, **self._take_answers()},
            caller=replace(setup.calling_client(), approved=approved),
            row=TriedRow((row.kind_of_row, str(row.pk)), row.from_code),
            copy=WorkingCopy.of_definition_row(row) if self._is_working else None,
            answers=self._results,
            streams=isinstance(self._request, ASGIRequest),
            is_dry=setup.is_dry,
            is_task=setup.is_task,
            topic=getattr(definition, "topic", ""),
        )

    def _take_answers(self) -> JsonObject:
        """Return the answers and the state that a stateless request sends back.

        Without an answer, the call starts from the beginning.
        """
        action, state = self._data.get(ANSWER), self._data.get(answers.STATE)
        if not action:
            return {}
        results = answers.results_of(self._forms, action)
        self._results = {**answers.earlier_answers(self._data), **results}
        questions = (form.question for form in self._forms)
        responses = {
            each.name: results[each.answer_key]
            for each in questions
            if each.name and not is_rejected(each.method, results[each.answer_key])
        }
        return {"inputResponses": responses, "requestState": state} if state else {}

    def _claim_run(self, setup: Setup) -> None:
        """Raise `Refusal` if this form was already run, or its ticket is too old."""
        data, definition = self._data, setup.definition
        # A changing call of another site is never repeated, whatever the hints say.
        changes = setup.must_confirm or (
            isinstance(definition, ToolDefinition) and not definition.hints.repeatable
        )
        if setup.is_dry or not changes:
            return
        try:
            at = claim_ticket(data.get("once", ""), self._request.user.pk, self._row)
        except NoTicket:
            raise Refusal(
                _("This page is too old, so nothing was run. Press the button again.")
            ) from None
        if at is not None:
            sentence = _("This was run at %(time)s. Sent again, it is not run again.")
            raise Refusal(sentence % {"time": time_text(at)})

    # -- the page ------------------------------------------------------------------

    def page_context(self) -> dict[str, Any]:
        """Return the context of the page.

        Templates log the whole context at DEBUG if a variable is missing, and error
        pages show it. So it must not reveal arguments, answers or sealed state.
        """
        setup = self._setup
        context: dict[str, Any] = {
            "is_working": self._is_working,
            "has_published": self._has_published,
            "may_try": has_right(self._request, "try"),
            "try_reason": whom_to_ask(self._request, "try"),
            "arguments": self._arguments,
            "seen": " ".join(self._version_names),
            "setup": setup,
            "may_start_task": self._has_published
            and getattr(self._definition, "can_be_task", False)
            and has_right(self._request, "view_task"),
            "problem": self.problem,
            "is_setup_wrong": self._is_setup_wrong,
            "notice": self._notice,
            # Once the example is kept, its name field is empty again.
            **examples.examples_context(
                self._row, QueryDict() if self._notice else self._data
            ),
        }
        if setup is not None:
            context["once"] = Secret(self.next_ticket)
            if self._forms:
                # The questions that the page showed, and still shows.
                state = self._data.get(answers.STATE, "")
                earlier = answers.earlier_answers(self._data)
                context |= self._questions(setup, state, earlier)
        return {**context, **self.result_context()}

    def _questions(
        self, setup: Setup, state: str, results: Mapping[str, JsonObject]
    ) -> dict[str, Any]:
        stateless = setup.chosen_revision.stateless
        questions = [form.question for form in self._forms]
        return {
            "forms": self._forms,
            "state": Secret(state),
            "asked": Secret(answers.text_of_questions(questions)),
            "answered": Secret(written_text(results)),
            "stateless": stateless,
            "is_task": setup.is_task,
            "can_decline": not stateless
            or any(form.kind != answers.TEXT for form in self._forms),
        }

    @property
    def next_ticket(self) -> str:
        """A ticket for the next run."""
        return new_ticket(self._request.user.pk, self._row)

    def result_context(self) -> dict[str, Any]:
        """Return the context of the part with the result; empty without one."""
        trial, setup = self._trial, self._setup
        if trial is None or setup is None:
            return {}
        site = self._request.build_absolute_uri("/")
        url = server_url(setup.server_slug, site)
        mirrored: Sequence[MirroredParameter] = ()
        # The schema of a working copy may be wrong; the tab Edit reports it.
        with suppress(ValueError):
            schema = getattr(self._definition, "input_schema", {})
            mirrored = mirrored_parameters(schema)
        address = wire.Address(url, not setup.is_public, mirrored)
        revision, example = setup.chosen_revision, self._example
        return {
            **self._questions(setup, trial.state, self._results),
            "tried_as": setup.as_whom_text,
            "who_url": self._who_can_see_url(trial, setup),
            "shown": presentation.present_trial(trial, self._definition),
            "preview": self._preview,
            "example": example,
            "judged": () if example is None else examples.judge_trial(example, trial),
            "messages_sent": [
                (title, Secret(text))
                for title, text in wire.exchanges(trial.messages, address, revision)
            ],
            "curl": Secret(wire.curl_command(trial.messages, address, revision)),
            "python": Secret(wire.python_example(trial.messages, address)),
        }

    def _who_can_see_url(self, trial: Trial, setup: Setup) -> str:
        """Return the page that says which rights the person lacks; "" if none."""
        # A known person gets 401 if the server admits nobody.
        refused = trial.refused == HTTPStatus.FORBIDDEN or (
            trial.refused == HTTPStatus.UNAUTHORIZED and setup.person_name
        )
        if not refused and trial.outcome is not Outcome.FORBIDDEN:
            return ""
        query = urlencode({"server": setup.server_slug, "person": setup.person_name})
        return f"{page_url(self._row, 'who')}?{query}"


def _paths_of_skill(row: DefinitionRow, content: JsonObject) -> list[str]:
    declared = declaration_of(row, mcp) if row.from_code else None
    function = getattr(declared, "function", None)
    if isinstance(function, ReadyFunction) and (skill := function.run.skill):
        return [path for path in skill.paths.values() if path != SKILL_FILE]
    files = (content.get("config") or {}).get("files", ())
    return [file["path"] for file in files if content.get("kind") == "skill"]
