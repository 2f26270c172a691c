"""Examples of a working copy, run before it is published."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _

from mcp_app.admin.trying.examples import judge_trial
from mcp_app.admin.trying.pages import TryPage
from mcp_app.admin.trying.setup import Refusal
from mcp_app.models import DefinitionRow, Example
from mcp_app.process.background import Unsuitable, run_on_loop
from mcp_app.workbench.trying.trial import Plan, Trial, run_trial

WITHIN_S: Final = 5.0
"""How long all examples together may take."""


def run_examples(
    request: HttpRequest, row: DefinitionRow
) -> Sequence[tuple[Example, str, str]]:
    """Run the examples as the user of the page, if the call only reads this site.

    An entry of the result is the example, a CSS class, and words.
    """
    examples = [*Example.objects.of(row)]
    if not examples:
        return []
    page = TryPage(request, row, QueryDict("which=working&dry=1"))
    plans: dict[Example, Plan] = {}
    trials: dict[Example, Trial] = {}
    for example in examples:
        try:
            if plan := page.example_plan(example):
                plans[example] = plan
        except (Refusal, ValueError) as error:
            trials[example] = Trial(reason=str(error))
    with suppress(Unsuitable):
        trials |= run_on_loop(request, partial(_run_plans, plans))
    outcomes = {each: judge_trial(each, trial) for each, trial in trials.items()}
    not_run = ("warn", _("not run"))
    return [(example, *outcomes.get(example, not_run)) for example in examples]


async def _run_plans(plans: Mapping[Example, Plan]) -> dict[Example, Trial]:
    """Run the plans one after the other until `WITHIN_S` is over."""
    ends = time.monotonic() + WITHIN_S
    trials = {}
    with suppress(TimeoutError):
        for example, plan in plans.items():
            seconds_left = max(0, ends - time.monotonic())
            trials[example] = await asyncio.wait_for(run_trial(plan), seconds_left)
    return trials
