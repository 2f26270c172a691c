"""Examples of a definition: kept on the page *Try it*, run before it is published."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.admin.page.header import page_url
from mcp_app.admin.trying.request import Arguments
from mcp_app.admin.trying.setup import Refusal
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import text_problem, visible
from mcp_app.models import DefinitionRow, Example
from mcp_app.models.examples import MAX_NAME_LENGTH
from mcp_app.process.background import Unsuitable
from mcp_app.protocol import jsonrpc
from mcp_app.workbench.trying.trial import Plan, Trial, run_trial
from mcp_app.workbench.viewer import run_on_loop

if TYPE_CHECKING:
    from mcp_app.admin.trying.pages import TryPage

MAX_EXAMPLES: Final = 30
MAX_EXPECTED: Final = 255
MAX_DIGITS: Final = 18
MAX_VALUES: Final = 16 * 1024
WITHIN_S: Final = 5.0
"""How long all examples together may take before a publication."""
EXAMPLE, KEEP, REMOVE = "example", "keep", "remove"
"""The buttons, whose values are primary keys, but for the one that keeps."""
NAME, EXPECT = "example_name", "example_expect"
HOLDS: Final = gettext_lazy("as expected")
NOT_RUN: Final = gettext_lazy("not run")


class NotKept(ValueError):
    """An example cannot be kept; the message is a sentence."""


@dataclass(frozen=True, slots=True, repr=False)
class ExampleLine:
    """An example as pages show it; `look` is the CSS class of what came of it."""

    key: str
    name: str
    expected: str
    url: str
    look: str = ""
    outcome: Label = ""


def find_example(row: DefinitionRow, key: str) -> Example | None:
    """Return the example of a row with this primary key, as text."""
    if not key.isdecimal() or len(key) > MAX_DIGITS:
        return None
    return Example.objects.of(row).filter(pk=int(key)).first()


def examples_context(row: DefinitionRow, data: QueryDict) -> dict[str, Any]:
    """Return the context of the part with the examples."""
    return {
        "examples": [_line(row, each) for each in Example.objects.of(row)],
        "keeps": KEEP in data,
        "example_name": data.get(NAME, ""),
        "example_expect": data.get(EXPECT, ""),
    }


def _line(
    row: DefinitionRow, example: Example, look: str = "", outcome: Label = ""
) -> ExampleLine:
    expected = _("it answers")
    if example.expect:
        expected = _("contains “%(text)s”") % {"text": visible(example.expect)}
    url = f"{page_url(row, 'try')}?{EXAMPLE}={example.pk}"
    name = visible(example.name)
    return ExampleLine(str(example.pk), name, expected, url, look, outcome)


def change_examples(row: DefinitionRow, data: QueryDict, arguments: Arguments) -> str:
    """Keep the values that were typed, or remove an example; return what was done.

    Raises `NotKept`, and as `Arguments.parsed_values` does.
    """
    if REMOVE in data:
        example = find_example(row, data.get(REMOVE, ""))
        if example is None:
            raise NotKept(_("This example is gone already."))
        example.delete()
        return _("Removed the example “%(name)s”.") % {"name": visible(example.name)}
    name, expect = data.get(NAME, "").strip(), data.get(EXPECT, "").strip()
    values = jsonrpc.write(arguments.parsed_values).decode()
    known = {each.name for each in Example.objects.of(row)}
    if not name:
        raise NotKept(_("Give the example a name."))
    if problem := text_problem(name) or text_problem(expect):
        raise NotKept(problem)
    if len(name) > MAX_NAME_LENGTH or len(expect) > MAX_EXPECTED:
        raise NotKept(_("Name or expected text is too long."))
    if len(values) > MAX_VALUES:
        raise NotKept(_("The values are too large to be kept."))
    if name not in known and len(known) >= MAX_EXAMPLES:
        raise NotKept(
            _("There are %(most)d examples already.") % {"most": MAX_EXAMPLES}
        )
    Example.objects.update_or_create(
        kind=row.kind_of_row,
        ref=str(row.pk),
        name=name,
        defaults={"values": values, "expect": expect},
    )
    return _("Kept the example “%(name)s”.") % {"name": visible(name)}


def judged_line(row: DefinitionRow, example: Example, trial: Trial) -> ExampleLine:
    """Return an example with what came of it; asks no database."""
    return _line(row, example, *_judge_trial(example, trial))


def _judge_trial(example: Example, trial: Trial) -> tuple[str, Label]:
    """Return whether an answer is as expected: a CSS class, and words."""
    if trial.refused or trial.reason or trial.outcome is not Outcome.ANSWERED:
        return "bad", _("no answer: %(why)s") % {
            "why": visible(trial.reason) or trial.outcome
        }
    if trial.questions:
        return "bad", _("no answer: it asks a question")
    texts = [json.dumps(trial.result, ensure_ascii=False)]
    texts += [str(each.get("text")) for each in trial.result.get("content", ())]
    if not any(example.expect in each for each in texts):
        return "bad", _("the answer does not contain “%(text)s”") % {
            "text": visible(example.expect)
        }
    return "good", HOLDS


def run_examples(request: HttpRequest, row: DefinitionRow) -> Sequence[ExampleLine]:
    """Run the examples of a working copy that only reads, as who looks at the page."""
    from mcp_app.admin.trying.pages import TryPage  # noqa: PLC0415

    kept = [*Example.objects.of(row)]
    page = TryPage(request, row, QueryDict("which=working&dry=1")) if kept else None
    if page is None:
        return []
    plans, told = _plans_of(page, kept)
    try:
        trials = run_on_loop(request, partial(_run_plans, [*plans.values()]))
    except Unsuitable as error:
        trials = [None] * len(plans)
        told = {**dict.fromkeys(plans, ("warn", str(error))), **told}
    for example, trial in zip(plans, trials, strict=True):
        if trial is not None:
            told[example] = _judge_trial(example, trial)
    return [_line(row, each, *told.get(each, ("warn", NOT_RUN))) for each in kept]


def _plans_of(
    page: TryPage, kept: Sequence[Example]
) -> tuple[dict[Example, Plan], dict[Example, tuple[str, Label]]]:
    """Return what is run, and what is said of examples that cannot be run."""
    plans, told = {}, dict[Example, tuple[str, Label]]()
    for each in kept:
        try:
            plan = page.example_plan(each)
        except (Refusal, ValueError) as error:
            told[each] = "bad", visible(str(error))
        else:
            if plan is not None:
                plans[each] = plan
    return plans, told


async def _run_plans(plans: Sequence[Plan]) -> list[Trial | None]:
    """Run one after the other; None for those for which no time is left."""
    ends = time.monotonic() + WITHIN_S
    trials: list[Trial | None] = []
    for each in plans:
        left = ends - time.monotonic()
        try:
            trials.append(await asyncio.wait_for(run_trial(each), max(left, 0)))
        except TimeoutError:
            trials.append(None)
    return trials
