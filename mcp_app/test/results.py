"""What a client of a test gets back and says: results, failures, answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from django.core.serializers.json import DjangoJSONEncoder

from mcp_app.interface.questions import Cancelled, Declined
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.transports.in_process import REJECTED, Failure, check_form

ELICITATION: Final = "elicitation/create"
SAMPLING: Final = "sampling/createMessage"
ROOTS: Final = "roots/list"
WANTED: Final[Mapping[str, str]] = {
    ELICITATION: "a dict with the fields of the form",
    SAMPLING: "the text that the model says, or a whole result",
    ROOTS: "a list of URIs",
}
EXAMPLES: Final[Mapping[str, object]] = {
    **{"string": "text", "integer": 1, "number": 1.5, "boolean": True, "array": []}
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a call, a prompt or a resource came to, as a client reads it.

    `data` is the structured content; if the tool returns a plain value, it is that
    value.  If there is none it is the text, and in revisions without structured
    content, and of a JSON resource, what the text says as JSON.  `content` are the
    blocks of a tool, the messages of a prompt or the contents of a resource;
    `progress`, `logs` and `questions` are the params of what came before the answer,
    and `raw` is the whole result.
    """

    data: Any
    text: str
    content: Sequence[JsonObject]
    progress: Sequence[JsonObject]
    logs: Sequence[JsonObject]
    questions: Sequence[JsonObject]
    raw: JsonObject

    @property
    def is_error(self) -> bool:
        """Whether the tool says that it failed."""
        return bool(self.raw.get("isError"))


class Refused(AssertionError):
    """The server answered with an error of the protocol: `code`, `message`, `data`."""

    def __init__(self, what: str, error: JsonObject) -> None:
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data = error.get("data")
        super().__init__(f"{what} was refused ({self.code}): {self.message}")


class ToolFailed(AssertionError):
    """The tool answered with `isError`; `result` is what a model reads."""

    def __init__(self, name: str, result: Result) -> None:
        self.result = result
        super().__init__(f"{name} failed: {result.text}")


class Unanswered(AssertionError):
    """The tool asked what the client has no answer to: `method` and `params`."""

    def __init__(self, method: str, params: JsonObject) -> None:
        self.method, self.params = method, params
        key = question_text(method, params) or method
        line = f"answers={{{key!r}: {_example_answer(method, params)!r}}}"
        super().__init__(
            f"The client was asked {key!r} ({method}) and has no answer. Give it one:"
            f" Client(…, {line})"
        )


def _example_answer(method: str, params: JsonObject) -> object:
    """Return an answer that fits a question."""
    if method == ROOTS:
        return ["file:///folder"]
    if method == SAMPLING:
        return "What the model says."
    properties: JsonObject = params.get("requestedSchema", {}).get("properties", {})
    return {name: _example_value(each) for name, each in properties.items()}


def _example_value(schema: JsonObject) -> object:
    choices = [schema["default"]] if "default" in schema else []
    choices += schema.get("enum", ())
    choices += [each.get("const") for each in schema.get("oneOf", ())]
    return choices[0] if choices else EXAMPLES.get(str(schema.get("type")))


def question_text(method: str, params: JsonObject) -> str:
    """Return what a person or a model is asked; "" if that is no text."""
    if method == ELICITATION:
        return str(params.get("message", ""))
    return text_of(params["messages"][-1]) if params.get("messages") else ""


def result_of_answer(method: str, params: JsonObject, answer: object) -> JsonObject:
    """Return the result that gives this answer.

    Raises `Failure` for a model's answer that the person does not give, TypeError for
    what is no answer, and ValueError for a form that breaks its schema.
    """
    is_refusal = isinstance(answer, Declined | Cancelled)
    if method == ELICITATION and is_refusal:
        return {"action": "decline" if isinstance(answer, Declined) else "cancel"}
    if method == ELICITATION and isinstance(answer, Mapping):
        content = as_json(answer)
        check_form(params, content)
        return {"action": "accept", "content": content}
    if method == ROOTS and (is_refusal or isinstance(answer, list)):
        uris = answer if isinstance(answer, list) else []
        return as_json({"roots": [{"uri": each} for each in uris]})
    if method == SAMPLING and is_refusal:
        raise Failure(REJECTED, "The user rejected the request.")
    if method == SAMPLING and isinstance(answer, Mapping):
        return as_json(answer)
    if method == SAMPLING and isinstance(answer, str):
        block = {"type": "text", "text": answer}
        return as_json({"role": "assistant", "content": block, "model": "test"})
    raise TypeError(f"{answer!r:.200} does not answer {method}: give {WANTED[method]}.")


def as_json(values: Mapping[str, object]) -> JsonObject:
    """Return values as a client sends them; raise TypeError for what is no JSON."""
    try:
        written: JsonObject = json.loads(json.dumps(values, cls=DjangoJSONEncoder))
        jsonrpc.write(written)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"{values!r:.500} cannot be sent as JSON: {error}") from None
    return written


def text_of(content: object) -> str:
    """Return the text of a block, a message, a content of a resource, or several."""
    if isinstance(content, list):
        return "\n".join(filter(None, map(text_of, content)))
    if not isinstance(content, dict):
        return ""
    inner = content.get("resource") or content.get("content")
    return str(content["text"]) if "text" in content else text_of(inner)


def data_of(result: JsonObject, text: str, *, structured: bool) -> object:
    """Return the value of a tool or a resource.

    `structured` says whether tools have structured content in this revision.
    """
    if (data := result.get("structuredContent")) is not None:
        # A server wraps a value that is no object in the member "result".
        return data["result"] if data.keys() == {"result"} else data
    types = [each.get("mimeType", "") for each in result.get("contents", ())]
    if any(each.endswith("json") for each in types) or not structured:
        with suppress(ValueError):
            return json.loads(text)
    return text
