"""Examples of a working copy, run before it is published."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import Final

from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext_lazy

from mcp_app.admin.trying.examples import ExampleLine, example_line, judge_trial
from mcp_app.admin.trying.pages import TryPage
from mcp_app.admin.trying.setup import Refusal
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible
from mcp_app.models import DefinitionRow, Example
from mcp_app.process.background import Unsuitable
from mcp_app.workbench.trying.trial import Plan, Trial, run_trial
from mcp_app.workbench.viewer import run_on_loop

WITHIN_S: Final = 5.0
"""How long all examples together may take."""
NOT_RUN: Final = gettext_lazy("not run")


def run_examples(request: HttpRequest, row: DefinitionRow) -> Sequence[ExampleLine]:
    """Run the examples of a working copy that only reads, as who looks at the page."""
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
            told[example] = judge_trial(example, trial)
    return [
        example_line(row, each, *told.get(each, ("warn", NOT_RUN))) for each in kept
    ]


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
