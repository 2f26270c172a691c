"""Questions of the server to its client, as forms of the page, and their answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.http import QueryDict
from django.utils.translation import gettext as _

from mcp_app.admin.editors.schema_fields import (
    Field,
    Unreadable,
    fields_of,
    fill_in_fields,
    values_of,
)
from mcp_app.admin.trying.presentation import uri_host
from mcp_app.interface.rules import visible
from mcp_app.models.fields import parse_json
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.workbench.trying.trial import SAMPLING, Question

ELICITATION: Final = "elicitation/create"
ROOTS: Final = "roots/list"
PERSON: Final = "a person"
"""The name of the model in the answer to a sampling request."""
MAX_QUESTIONS: Final = 50
QUESTIONS_INPUT: Final = "asked"
"""The input with the questions that the page shows."""
ANSWERED: Final = "answered"
"""The input with the answers that were given before."""
STATE: Final = "state"
TEXT: Final = "text"
"""The kind of the form that asks for the text of a model."""


@dataclass(frozen=True, slots=True, repr=False)
class Form:
    """A question of the page.

    `kind` is "form", "url", "text" or "roots". If there are no `fields`, `name` is the
    name of the only input.  `address` is any URL as text; `url` is the same one, or ""
    if no browser should open it.
    """

    question: Question
    kind: str
    message: str
    name: str
    fields: Sequence[Field] = ()
    url: str = ""
    address: str = ""
    host: str = ""
    value: str = ""


class WrongAnswers(Exception):
    """Some answers cannot be read; `forms` are all forms, with error messages."""

    def __init__(self, forms: Sequence[Form]) -> None:
        super().__init__("Some answers cannot be read.")
        self.forms = forms


def question_form(question: Question, data: QueryDict | None = None) -> Form:
    """Return the form of a question, filled in with the answer in `data`, if any."""
    params, name = question.params, f"answer-{question.answer_key[:12]}"
    message = visible(str(params.get("message", "")), None)
    value = "" if data is None else data.get(name, "")
    if question.method == ROOTS:
        message = _("Which folders does it have?")
        return Form(question, "roots", message, name, value=value)
    if question.method == SAMPLING:
        return Form(question, TEXT, _conversation(params), name, value=value)
    if params.get("mode") == "url":
        url = str(params.get("url", ""))
        host, address = visible(uri_host(url)), visible(url, None)
        # Other schemes may run a script or a program.
        if not (host and url.lower().startswith(("https://", "http://"))):
            url = ""
        return Form(question, "url", message, name, url=url, address=address, host=host)
    schema = params.get("requestedSchema", {})
    fields = fields_of(schema, f"{name}-", is_question=True) or []
    if data is not None:
        fields = fill_in_fields(fields, data)
    return Form(question, "form", message, name, fields)


def _conversation(params: JsonObject) -> str:
    """Return the messages of a sampling request as text."""
    lines = [str(params.get("systemPrompt") or "")]
    for message in params.get("messages", []):
        content = message.get("content")
        blocks = content if isinstance(content, list) else [content]
        texts = [
            str(block.get("text", block.get("type"))) if isinstance(block, dict) else ""
            for block in blocks
        ]
        lines.append(f"{message.get('role')}: {' '.join(texts)}")
    return visible("\n".join(filter(None, lines)), None)


def text_of_questions(questions: Iterable[Question]) -> str:
    """Return the value of the input that sends the questions back."""
    entries = [
        {"method": question.method, "params": question.params, "name": question.name}
        for question in questions
    ]
    return jsonrpc.write(entries).decode()


def read_questions(data: QueryDict) -> list[Question]:
    """Return the questions that the page sent back; skip invalid entries."""
    return [
        Question(each["method"], each["params"], each["name"])
        for each in _parse_input(data.get(QUESTIONS_INPUT, ""), [])[:MAX_QUESTIONS]
        if _is_question(each)
    ]


def _is_question(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("params"), dict):
        return False
    params = value["params"]
    messages = params.get("messages", [])
    return (
        value.get("method") in (ELICITATION, SAMPLING, ROOTS)
        and isinstance(value.get("name"), str)
        and isinstance(params.get("requestedSchema", {}), dict)
        and isinstance(messages, list)
        and all(isinstance(message, dict) for message in messages)
    )


def earlier_answers(data: QueryDict) -> dict[str, JsonObject]:
    """Return the answers that were given before, by the key of their question."""
    return {
        key: value
        for key, value in _parse_input(data.get(ANSWERED, ""), {}).items()
        if isinstance(value, dict)
    }


def _parse_input(text: str, otherwise: Any) -> Any:
    """Parse JSON; return `otherwise` if it is invalid or of another Python type."""
    try:
        value = parse_json(text) if text else otherwise
    except ValueError:
        return otherwise
    return value if isinstance(value, type(otherwise)) else otherwise


def results_of(forms: Sequence[Form], action: str) -> dict[str, JsonObject]:
    """Return the results that answer these questions, by their keys.

    Raises `WrongAnswers`.
    """
    results: dict[str, JsonObject] = {}
    wrong: dict[int, Form] = {}
    for at, form in enumerate(forms):
        try:
            results[form.question.answer_key] = result_of(form, action)
        except Unreadable as error:
            wrong[at] = replace(form, fields=error.fields)
    if wrong:
        raise WrongAnswers([wrong.get(at, form) for at, form in enumerate(forms)])
    return results


def result_of(form: Form, action: str) -> JsonObject:
    """Return the result that answers a question; raises `Unreadable`.

    `action` is "accept", "decline" or "cancel". Without "accept", the result of a form
    of the kind "text" has only the action.
    """
    if form.kind == "roots":
        lines = form.value.splitlines() if action == "accept" else []
        return {"roots": [{"uri": line.strip()} for line in lines if line.strip()]}
    if action != "accept":
        return {"action": action}
    if form.kind == TEXT:
        content = {"type": "text", "text": form.value}
        return {"role": "assistant", "content": content, "model": PERSON}
    if form.kind == "url":
        return {"action": "accept"}
    return {"action": "accept", "content": values_of(form.fields)}
