"""Examples of a definition, which the page *Try it* keeps, and how they are judged."""

from __future__ import annotations

import json
from typing import Any, Final

from django.http import QueryDict
from django.utils.translation import gettext as _

from mcp_app.admin.forms.arguments import Arguments
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.rules import text_problem, visible
from mcp_app.models import DefinitionRow, Example
from mcp_app.models.examples import MAX_NAME_LENGTH
from mcp_app.protocol import jsonrpc
from mcp_app.workbench.trying.trial import Trial

MAX_EXAMPLES: Final = 30
MAX_EXPECTED: Final = 255
MAX_VALUES: Final = 16 * 1024
EXAMPLE, KEEP, REMOVE = "example", "keep", "remove"
"""The buttons; the values of the first and the last are primary keys."""
NAME, EXPECT = "example_name", "example_expect"


class NotKept(ValueError):
    """An example cannot be kept; the message is a sentence."""


def find_example(row: DefinitionRow, key: str) -> Example | None:
    """Return the example of a row with this primary key, as text."""
    rows = Example.objects.of(row) if key else ()
    return next((each for each in rows if str(each.pk) == key), None)


def examples_context(row: DefinitionRow, data: QueryDict) -> dict[str, Any]:
    """Return the context of the part with the examples."""
    return {
        "examples": Example.objects.of(row),
        "keeps": KEEP in data,
        "example_name": data.get(NAME, ""),
        "example_expect": data.get(EXPECT, ""),
    }


def change_examples(row: DefinitionRow, data: QueryDict, arguments: Arguments) -> str:
    """Keep the typed values, or remove an example; return a sentence about it.

    Raises `NotKept` and the errors of `Arguments.parsed_values`.
    """
    if REMOVE in data:
        example = find_example(row, data.get(REMOVE, ""))
        if example is None:
            raise NotKept(_("This example is gone already."))
        example.delete()
        return _("Removed the example “%(name)s”.") % {"name": visible(example.name)}
    name, expect = data.get(NAME, "").strip(), data.get(EXPECT, "").strip()
    values = jsonrpc.write(arguments.parsed_values).decode()
    names = {each.name for each in Example.objects.of(row)}
    if not name:
        raise NotKept(_("Give the example a name."))
    if problem := text_problem(name) or text_problem(expect):
        raise NotKept(problem)
    if len(name) > MAX_NAME_LENGTH or len(expect) > MAX_EXPECTED:
        raise NotKept(_("Name or expected text is too long."))
    if len(values) > MAX_VALUES:
        raise NotKept(_("The values are too large to be kept."))
    if name not in names and len(names) >= MAX_EXAMPLES:
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


def judge_trial(example: Example, trial: Trial) -> tuple[str, str]:
    """Return whether an answer is as expected, as a CSS class and words."""
    expect, result = example.expect, trial.result
    is_answered = trial.outcome is Outcome.ANSWERED and not trial.refused
    if trial.reason or trial.questions or not is_answered:
        why = visible(trial.reason) or trial.outcome
        why = _("it asks a question") if trial.questions else why
        return "bad", _("no answer: %(why)s") % {"why": why}
    texts = (each.get("text") for each in result.get("content", ()))
    searched = (json.dumps(result, ensure_ascii=False), *map(str, texts))
    if any(expect in each for each in searched):
        return "good", _("as expected")
    sentence = _("the answer does not contain “%(text)s”")
    return "bad", sentence % {"text": visible(expect)}
