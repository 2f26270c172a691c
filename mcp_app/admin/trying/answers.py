"""Questions of the server to its client, as forms of the page, and their answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from django.http import QueryDict
from django.utils.translation import gettext as _

from mcp_app.admin.trying.fields import Field, fields_of, filled, values_of
from mcp_app.interface.rules import visible
from mcp_app.models.fields import parse
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.workbench.trying.trial import Question

ELICITATION: Final = "elicitation/create"
SAMPLING: Final = "sampling/createMessage"
ROOTS: Final = "roots/list"
PERSON: Final = "a person"
"""The model that a sampled text names."""
MOST_ASKED: Final = 50
ASKED: Final = "asked"
"""The input with the questions that the page shows."""
ANSWERED: Final = "answered"
"""The input with the answers that were given before."""
STATE: Final = "state"


@dataclass(frozen=True, slots=True)
class Form:
    """A question of the page.

    `kind` is "form", "url", "text" or "roots"; `name` is that of its only input if it
    has no fields.
    """

    question: Question
    kind: str
    message: str
    name: str
    fields: Sequence[Field] = ()
    url: str = ""
    host: str = ""
    value: str = ""


def form_of(question: Question, data: QueryDict | None = None) -> Form:
    """Return the form of a question, with what was typed if `data` has it."""
    params, name = question.params, f"answer-{question.key[:12]}"
    message = visible(str(params.get("message", "")), None)
    if question.method == ROOTS:
        value = "" if data is None else data.get(name, "")
        return Form(
            question, "roots", _("Which folders does it have?"), name, value=value
        )
    if question.method == SAMPLING:
        value = "" if data is None else data.get(name, "")
        return Form(question, "text", _conversation(params), name, value=value)
    if params.get("mode") == "url":
        url = str(params.get("url", ""))
        host = urlsplit(url).netloc
        return Form(question, "url", message, name, url=url, host=visible(host))
    schema = params.get("requestedSchema", {})
    fields = fields_of(schema, f"{name}-") or []
    return Form(
        question,
        "form",
        message,
        name,
        fields if data is None else filled(fields, data),
    )


def _conversation(params: JsonObject) -> str:
    """Return what a model is asked, as text."""
    messages: list[Any] = params.get("messages", [])
    lines = [str(params.get("systemPrompt") or ""), *map(_said, messages)]
    return visible("\n".join(line for line in lines if line), None)


def _said(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    blocks = content if isinstance(content, list) else [content]
    texts = [
        str(each.get("text", each.get("type"))) if isinstance(each, dict) else ""
        for each in blocks
    ]
    return f"{message.get('role')}: {' '.join(texts)}"


# -- through the page and back -------------------------------------------------------


def written(questions: Iterable[Question]) -> str:
    """Return the text of the input that brings the questions back."""
    asked = [
        {"method": each.method, "params": each.params, "name": each.name}
        for each in questions
    ]
    return jsonrpc.write(asked).decode()


def written_answers(given: Mapping[str, JsonObject]) -> str:
    """Return the text of the input that brings the answers back."""
    return jsonrpc.write(given).decode()


def read(data: QueryDict) -> list[Question]:
    """Return the questions that the page showed; what is none of them is left out."""
    return [
        Question(each["method"], each["params"], each["name"])
        for each in _parsed(data.get(ASKED, ""), [])[:MOST_ASKED]
        if _is_question(each)
    ]


def _is_question(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.get("method") in (ELICITATION, SAMPLING, ROOTS)
        and isinstance(value.get("params"), dict)
        and isinstance(value.get("name"), str)
    )


def earlier(data: QueryDict) -> dict[str, JsonObject]:
    """Return the answers that were given before, by the key of their question."""
    return {
        key: value
        for key, value in _parsed(data.get(ANSWERED, ""), {}).items()
        if isinstance(value, dict)
    }


def _parsed(text: str, otherwise: Any) -> Any:
    try:
        value = parse(text) if text else otherwise
    except ValueError:
        return otherwise
    return value if isinstance(value, type(otherwise)) else otherwise


def result_of(form: Form, action: str) -> JsonObject:
    """Return the result that answers a question; raises `Unreadable`.

    `action` is "accept", "decline" or "cancel".
    """
    if form.kind == "roots":
        uris = form.value.split() if action == "accept" else []
        return {"roots": [{"uri": uri} for uri in uris]}
    if form.kind == "text":
        content = {"type": "text", "text": form.value}
        return {"role": "assistant", "content": content, "model": PERSON}
    if action != "accept":
        return {"action": action}
    if form.kind == "url":
        return {"action": "accept"}
    return {"action": "accept", "content": values_of(form.fields)}
