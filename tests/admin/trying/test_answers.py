"""Questions as forms of the page, and what answers them."""

from __future__ import annotations

import ast
import json
import shlex
from dataclasses import dataclass
from typing import Any, Final

import pytest
from django.http import QueryDict
from django.test import AsyncClient

from mcp_app import Context
from mcp_app.admin.trying import answers
from mcp_app.admin.trying.answers import (
    ELICITATION,
    ROOTS,
    Form,
    WrongAnswers,
    question_form,
    result_of,
    results_of,
)
from mcp_app.admin.trying.wire import (
    MAX_MESSAGES,
    MAX_TEXT_LENGTH,
    Address,
    curl_command,
    exchanges,
    python_example,
)
from mcp_app.models import Tool
from mcp_app.protocol.headers import mirrored_parameters
from mcp_app.protocol.revisions import LATEST, REVISIONS
from mcp_app.transports.in_process import Message
from mcp_app.workbench.trying.trial import SAMPLING, Question
from tests.admin.trying.conftest import Offer
from tests.admin.trying.console import answer, run, text_of, url_of
from tests.admin.trying.console import result_of as text_of_result
from tests.scripting import STATEFUL, STATELESS

SCHEMA: Final = {
    "type": "object",
    "properties": {"item": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["item"],
}
ORDER: Final = Question(
    ELICITATION, {"mode": "form", "message": "What?", "requestedSchema": SCHEMA}
)


def posted(**values: str) -> QueryDict:
    data = QueryDict(mutable=True)
    data.update(values)
    return data


def page_of(url: object) -> Form:
    return question_form(
        Question(ELICITATION, {"mode": "url", "message": "", "url": url})
    )


def test_answers_are_read_together() -> None:
    roots = question_form(Question(ROOTS, {}, "folders"))
    item, count = (each.name for each in question_form(ORDER).fields)
    wrong = question_form(ORDER, posted(**{item: "tea", count: "two"}))
    with pytest.raises(WrongAnswers) as raised:
        results_of([roots, wrong], "accept")
    first, second = raised.value.forms
    assert first == roots
    assert [bool(each.error) for each in second.fields] == [False, True]
    assert results_of([roots, wrong], "cancel") == {
        roots.question.answer_key: {"roots": []},
        ORDER.answer_key: {"action": "cancel"},
    }


@dataclass
class Order:
    count: int


async def ask(ctx: Context, item: str) -> str:
    return f"{item}: {await ctx.elicit('How many?', Order)}"


@pytest.mark.parametrize("version", [STATELESS, STATEFUL])
async def test_what_cannot_be_read_leaves_the_question_open(
    client: AsyncClient, offer: Offer, version: str
) -> None:
    url = await offer("asks_how_many", ask)
    asked = await run(client, url, item="tea", revision=version)
    for values, wrong in (({"count": "two"}, ["count"]), ({"item": "\0"}, ["item"])):
        asked = await answer(client, url, asked, **values)
        assert asked.context["problem"] == "Correct what is marked. Nothing was run."
        assert "How many?" in text_of(asked)
        arguments, [form] = asked.context["arguments"].fields, asked.context["forms"]
        fields = [*arguments, *form.fields]
        assert [each.key for each in fields] == ["item", "count"]
        assert [each.key for each in fields if each.error] == wrong
    done = await answer(client, url, asked, item="tea", count="2")
    assert text_of_result(done) == "tea: Accepted(data=Order(count=2))"


def test_two_questions_have_different_fields() -> None:
    other = Question(ELICITATION, {**ORDER.params, "message": "What else?"})
    one, two = ({each.name for each in question_form(q).fields} for q in (ORDER, other))
    assert not one & two


def test_the_key_of_a_question_is_of_what_it_asks() -> None:
    """The next time, in another call, what is random in it differs."""
    again = Question(ELICITATION, {**ORDER.params, "_meta": {"a": 1}})
    assert again.answer_key == ORDER.answer_key
    pay = {"mode": "url", "url": "https://x.org", "elicitationId": "1"}
    same = Question(ELICITATION, {**pay, "elicitationId": "2"})
    assert same.answer_key == Question(ELICITATION, pay).answer_key
    others = [
        Question(ELICITATION, {**ORDER.params, "message": "Which?"}),
        Question(ELICITATION, {**ORDER.params, "requestedSchema": {}}),
        Question(SAMPLING, ORDER.params),
        Question(ELICITATION, ORDER.params, "order"),
    ]
    assert len({each.answer_key for each in (ORDER, *others)}) == 5


def test_a_page_to_open() -> None:
    for url in ("https://shop.example/pay?a=1", "HTTP://shop.example/"):
        form = page_of(url)
        assert (form.kind, form.url, form.address) == ("url", url, url)
        assert form.host == "shop.example"


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "javascript://shop.example/%0aalert(1)",
        "data:text/html,<b>",
        "file:///etc/passwd",
        "vbscript:x",
        " https://shop.example",
        "http:alert",
        "https://",
        "http://[",
        "//shop.example/",
        "",
        5,
    ],
)
def test_what_is_no_page_is_no_link(url: object) -> None:
    form = page_of(url)
    assert form.url == ""
    assert form.address == str(url)


def test_an_address_shows_what_is_hidden_in_it() -> None:
    form = page_of("https://shop\u202e.example/\u200b")
    assert form.address == "https://shop⟦U+202E⟧.example/⟦U+200B⟧"
    assert form.host == "shop⟦U+202E⟧.example"


def test_a_model_and_roots() -> None:
    asked = {
        "systemPrompt": "Be brief.",
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "Hi\u202e"}},
            {"role": "user", "content": [{"type": "image"}, "no block"]},
            {"role": "user"},
        ],
    }
    form = question_form(Question(SAMPLING, asked))
    assert form.kind == "text"
    lines = ["Be brief.", "user: Hi⟦U+202E⟧", "user: image ", "user: "]
    assert form.message.splitlines() == lines
    assert result_of(form, "decline") == {"action": "decline"}
    roots = Question(ROOTS, {})
    form = question_form(roots)
    typed = question_form(roots, posted(**{form.name: "file:///a\r\n\r\nfile:///b c"}))
    uris = [each["uri"] for each in result_of(typed, "accept")["roots"]]
    assert uris == ["file:///a", "file:///b c"]
    assert result_of(typed, "decline") == {"roots": []}


@pytest.mark.parametrize(
    ("version", "last"), [(STATEFUL, '"error":{"code":-1'), (STATELESS, "requestState")]
)
async def test_nobody_answers_for_the_model(
    client: AsyncClient, version: str, last: str
) -> None:
    """In a session that is an error; without one, such a client does not call again."""
    url = await url_of(Tool, name="test_sampling")
    asked = await run(client, url, prompt="Say it.", revision=version)
    assert ("Decline" in text_of(asked)) == (version == STATEFUL)
    response = await answer(client, url, asked, "decline")
    sent = [text for _title, text in response.context["messages_sent"]]
    assert last in [each for each in sent if each.startswith("POST")][-1]
    assert "LLM response: " not in text_of(response)
    assert '"role":"assistant"' not in "".join(sent)


@pytest.mark.parametrize(
    "value",
    [
        5,
        {},
        [5],
        [{}],
        [{"method": "tools/call", "params": {}, "name": ""}],
        [{"method": ROOTS, "params": [], "name": ""}],
        [{"method": ROOTS, "params": {}}],
        [{"method": ROOTS, "params": {}, "name": 5}],
        [{"method": [ROOTS], "params": {}, "name": ""}],
        [{"method": ELICITATION, "params": {"requestedSchema": 5}, "name": ""}],
        [{"method": SAMPLING, "params": {"messages": 5}, "name": ""}],
        [{"method": SAMPLING, "params": {"messages": [5]}, "name": ""}],
    ],
)
def test_what_is_no_question_is_left_out(value: object) -> None:
    assert answers.read_questions(posted(asked=json.dumps(value))) == []


@pytest.mark.parametrize("text", ["{", "\ud800", "1e999", "[" * 100_000, "null", "5"])
def test_what_is_no_json_brings_nothing_back(text: str) -> None:
    assert answers.read_questions(posted(asked=text)) == []
    assert answers.earlier_answers(posted(answered=text)) == {}


def test_so_many_questions_are_read() -> None:
    one: dict[str, Any] = {"method": ROOTS, "params": {}, "name": ""}
    many = posted(asked=json.dumps([one] * 1_000))
    assert len(answers.read_questions(many)) == answers.MAX_QUESTIONS
    wrong = {"a": 5, "b": {"action": "accept"}, "c": None}
    assert answers.earlier_answers(posted(answered=json.dumps(wrong))) == {
        "b": {"action": "accept"}
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": 5},
        {"properties": {"a": 5}},
        {"properties": {"a": {"type": 5}}},
        {"oneOf": []},
        {"required": 5, "properties": {"": {}}},
    ],
)
def test_a_form_of_a_strange_schema(schema: dict[str, Any]) -> None:
    params = {"message": 5, "requestedSchema": schema}
    assert question_form(Question(ELICITATION, params)).kind == "form"


# -- wire ------------------------------------------------------------------------------


URL: Final = "https://example.org/mcp"
OPEN: Final = Address(URL, needs_token=False)
CLOSED: Final = Address(URL, needs_token=True)
SESSION: Final = "Mcp-Session-Id: the one that initialize returned"


def sent(method: str, **params: Any) -> Message:
    value = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return Message(True, json.dumps(value, ensure_ascii=False).encode())


def head(message: Message, version: str, address: Address = OPEN) -> list[str]:
    [(title, text)] = exchanges([message], address, REVISIONS[version])
    assert title == "From the client"
    head, _, body = text.partition("\n\n")
    assert json.loads(body) == json.loads(message.text)
    return head.splitlines()


@pytest.mark.parametrize(
    ("version", "opening", "calling"),
    [
        ("2024-11-05", [], [SESSION]),
        ("2025-03-26", [], [SESSION]),
        ("2025-06-18", [], ["MCP-Protocol-Version: 2025-06-18", SESSION]),
        ("2025-11-25", [], ["MCP-Protocol-Version: 2025-11-25", SESSION]),
        (
            "2026-07-28",
            ["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: initialize"],
            [
                "MCP-Protocol-Version: 2026-07-28",
                "Mcp-Method: tools/call",
                "Mcp-Name: add",
            ],
        ),
    ],
)
def test_the_headers_of_each_revision(
    version: str, opening: list[str], calling: list[str]
) -> None:
    both = [
        f"POST {URL}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
    ]
    assert head(sent("initialize"), version) == [*both, *opening]
    assert head(sent("tools/call", name="add"), version) == [*both, *calling]


def test_a_token_is_asked_for_and_not_shown() -> None:
    for version in REVISIONS:
        assert "Authorization: Bearer YOUR-TOKEN" in head(sent("ping"), version, CLOSED)
        assert not any("Auth" in each for each in head(sent("ping"), version))


def test_parameters_that_headers_repeat() -> None:
    schema = {
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "on": {"type": "boolean", "x-mcp-header": "On"},
            "no": {"type": "string", "x-mcp-header": "No"},
        }
    }
    address = Address(URL, False, mirrored_parameters(schema))
    arguments = {"region": "São Paulo", "count": 5, "on": True, "no": None}
    message = sent("tools/call", name="a", arguments=arguments)
    assert head(message, LATEST.version, address)[-3:] == [
        "Mcp-Param-Region: =?base64?U8OjbyBQYXVsbw==?=",
        "Mcp-Param-Count: 5",
        "Mcp-Param-On: true",
    ]
    assert not any("Param" in each for each in head(message, "2025-11-25", address))


def test_an_address_is_repeated_so_that_no_header_breaks() -> None:
    message = sent("resources/read", uri="x:é\r\nX-Evil: 1")
    [*_, name] = head(message, LATEST.version)
    assert name == "Mcp-Name: =?base64?eDrDqQ0KWC1FdmlsOiAx?="


def test_what_comes_back_is_shown_as_text() -> None:
    long = Message(False, b'"' + b"a" * MAX_TEXT_LENGTH * 2)
    broken = Message(False, b"\xff\x1b[31m \xe2\x80\xae")
    shown = [*exchanges([long, broken], OPEN, LATEST)]
    assert {title for title, _text in shown} == {"From the server"}
    assert len(shown[0][1]) == MAX_TEXT_LENGTH
    assert shown[1][1] == "�⟦U+001B⟧[31m ⟦U+202E⟧"
    assert len([*exchanges([long] * 1_000, OPEN, LATEST)]) == MAX_MESSAGES


def test_curl_sends_the_same() -> None:
    text = 'it\'s "$(id)" `id` \\ \n ä \u202e'
    message = sent("tools/call", name="add", arguments={"a": text})
    line = curl_command([message, Message(False, b"{}")], CLOSED, LATEST)
    assert line.isascii()
    words = [each for each in shlex.split(line) if each != "\n"]
    assert words[:3] == ["curl", "-sS", URL]
    assert json.loads(words[words.index("--data") + 1]) == json.loads(message.text)
    headers = [words[at + 1] for at, each in enumerate(words) if each == "-H"]
    assert "Mcp-Name: add" in headers
    assert "Authorization: Bearer YOUR-TOKEN" in headers


def test_python_sends_the_same() -> None:
    """Also for a session: its client opens one by itself."""
    arguments = {"a": [True, None, 'it\'s "\u202e"', 10**30]}
    called = sent("tools/call", name="add", arguments=arguments, _meta={})
    program = python_example([sent("initialize"), called], CLOSED)
    assert f"URL = {json.dumps(URL)}" in program
    assert '"Bearer YOUR-TOKEN"' in program
    assert program.isascii()
    [call] = [
        node
        for node in ast.walk(ast.parse(program))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "client.call_tool"
    ]
    assert [ast.literal_eval(each) for each in call.args] == ["add", arguments]
    assert "read_resource('a:b')" in python_example(
        [sent("resources/read", uri="a:b")], OPEN
    )
    assert not python_example([sent("completion/complete")], OPEN)


def test_of_a_session_there_is_no_one_line() -> None:
    for version in REVISIONS.keys() - {LATEST.version}:
        assert curl_command([sent("ping")], OPEN, REVISIONS[version]) == ""
    assert curl_command([], OPEN, LATEST) == ""
