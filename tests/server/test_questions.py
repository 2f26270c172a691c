"""Questions in both eras: how each revision puts them, and what answers mean."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from mcp_app.interface.context import Client as KnownClient
from mcp_app.interface.errors import ClientCannot, ClientRefused
from mcp_app.interface.questions import (
    Accepted,
    Cancelled,
    Declined,
    Elicit,
    ElicitUrl,
    ModelPreferences,
    Question,
    Roots,
    Sample,
    SamplingResult,
)
from mcp_app.protocol.content import Block
from mcp_app.protocol.revisions import REVISIONS, STATEFUL, Revision
from mcp_app.server import questions
from mcp_app.server.conversation import MAX_TOOL_ROUNDS
from mcp_app.server.questions import (
    PreparedQuestion,
    prepare_question,
    require_capability,
    sampled_block,
)
from tests.asgi_client import EVERYTHING, PREFIX, Client, JsonObject, Outcome
from tests.behaviours import BYTES, Order
from tests.marks import NEWEST_FIRST
from tests.serving import Connect

NEWEST: Final = "2026-07-28"
FORMS: Final = ("2025-06-18", "2025-11-25", NEWEST)
URLS: Final = ("2025-11-25", NEWEST)
ENCODED: Final = base64.b64encode(BYTES).decode()

SAMPLED: Final[JsonObject] = {
    "role": "assistant",
    "model": "small",
    "content": {"type": "text", "text": "hello"},
}


def answering(**answers: JsonObject) -> Callable[[str, JsonObject], JsonObject]:
    """Answer by the method's first word: elicitation, sampling, roots."""
    return lambda method, params: answers[method.partition("/")[0]]


async def asked(client: Client, tool: str, answers: Any, **arguments: Any) -> Outcome:
    params = {"name": tool, "arguments": arguments}
    return await client.talk("tools/call", params, answers)


def failed(found: Outcome) -> str:
    assert found.result["isError"] is True
    return found.text


# -- forms ----------------------------------------------------------------------

ACTIONS: Final[list[tuple[JsonObject, str]]] = [
    ({"action": "accept", "content": {"item": "tea", "count": 2}}, "2 tea"),
    ({"action": "accept", "content": {"item": "tea"}}, "1 tea"),
    ({"action": "accept", "content": {"item": "tea", "extra": 1}}, "1 tea"),
    ({"content": {"item": "tea"}}, "1 tea"),
    ({"action": "decline"}, "declined"),
    ({"action": "cancel"}, "cancelled"),
    ({"action": "decline", "content": {"item": "tea"}}, "declined"),
]


@pytest.mark.parametrize("tool", ["orders", "orders_sync"])
@pytest.mark.parametrize("version", FORMS)
async def test_a_form(client: Client, tool: str) -> None:
    for answer, text in ACTIONS:
        found = await asked(client, tool, answering(elicitation=answer))
        assert found.text == text
        (question,) = found.questions
        assert question["method"] == "elicitation/create"
        assert question["params"]["message"] == "What?"
        schema = question["params"]["requestedSchema"]
        assert list(schema["properties"]) == ["item", "count"]
        assert schema["required"] == ["item"]
        mode = question["params"].get("mode")
        assert mode == ("form" if client.revision.elicitation_mode_member else None)


WRONG_FORMS: Final[list[JsonObject]] = [
    *({"action": "accept"}, {"action": "accept", "content": None}),
    *({"action": "accept", "content": []}, {"action": "accept", "content": {}}),
    {"action": "accept", "content": {"item": 7}},
    {"action": "accept", "content": {"item": "tea", "count": "many"}},
    *({"action": "perhaps"}, {"action": 7}, {}),
]


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
async def test_answers_that_do_not_fit(client: Client) -> None:
    for answer in WRONG_FORMS:
        for tool in ("orders", "orders_sync"):
            failed(await asked(client, tool, answering(elicitation=answer)))


async def test_stateless_answers_that_do_not_fit_are_asked_again(
    client: Client,
) -> None:
    right: JsonObject = {"action": "accept", "content": {"item": "tea"}}
    answers = iter([*WRONG_FORMS, right])
    found = await asked(client, "orders", lambda method, params: next(answers))
    assert found.text == "1 tea"
    assert len(found.questions) == len(WRONG_FORMS) + 1


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("tool", ["orders", "samples", "roots", "visits"])
async def test_a_client_that_answers_with_an_error(
    connect: Connect, version: str, tool: str
) -> None:
    if tool == "visits" and version not in URLS:
        return
    client = await connect(version)
    error = {"error": {"code": -32603, "message": "I am tired."}}
    found = await asked(client, tool, lambda method, params: error)
    assert "I am tired." in failed(found)


@pytest.mark.parametrize("version", FORMS)
async def test_defaults_and_titled_choices(client: Client, version: str) -> None:
    answer: JsonObject = {"action": "accept", "content": {"size": "l"}}
    found = await asked(client, "chooses", answering(elicitation=answer))
    assert found.text == "{'size': 'l'}"
    properties = found.questions[0]["params"]["requestedSchema"]["properties"]
    size, gift = properties["size"], properties["gift"]
    assert gift["default"] is True
    if version == "2025-06-18":
        assert (size["enum"], size["enumNames"]) == (["s", "l"], ["Small", "Large"])
        assert "default" not in size
    else:
        assert size["oneOf"][0] == {"const": "s", "title": "Small"}
        assert size["default"] == "s"


@pytest.mark.parametrize("version", FORMS)
async def test_several_choices(client: Client, version: str) -> None:
    answer: JsonObject = {"action": "accept", "content": {"sizes": ["s", "l"]}}
    found = await asked(client, "chooses", answering(elicitation=answer), several=True)
    if version == "2025-06-18":
        assert "several choices" in failed(found)
    else:
        assert found.text == "{'sizes': ['s', 'l']}"


# -- URLs -----------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["visits", "visits_sync"])
@pytest.mark.parametrize("version", URLS)
async def test_a_url(client: Client, tool: str) -> None:
    for action, text, content in (
        ("accept", "accepted", {}),
        ("accept", "accepted", {"content": None}),
        ("decline", "declined", {}),
        ("cancel", "cancelled", {}),
    ):
        answer: JsonObject = {"action": action, **content}
        found = await asked(client, tool, answering(elicitation=answer))
        assert found.text == text
        (question,) = found.questions
        assert question["params"]["mode"] == "url"
        assert question["params"]["url"] == "https://example.org/pay"
        identifier = question["params"].get("elicitationId")
        assert (identifier is not None) == client.revision.elicitation_identifiers
        completed = found.notifications("notifications/elicitation/complete")
        if identifier is not None and action == "accept":
            assert completed == [{"elicitationId": identifier}]
        else:
            assert completed == []


@pytest.mark.parametrize("url", ["ftp://example.org", "https://", "http://example.org"])
@pytest.mark.parametrize("version", URLS)
async def test_urls_that_nobody_is_sent_to(client: Client, url: str) -> None:
    found = await asked(client, "visits", answering(), url=url)
    assert "visits failed" in failed(found)
    assert found.questions == []


async def test_consent_is_not_the_end_of_a_visit(stateful: Client) -> None:
    answer: JsonObject = {"action": "accept"}
    for paid in (False, True):
        found = await asked(
            stateful, "visits", answering(elicitation=answer), paid=paid
        )
        assert found.text == "accepted"
        completed = found.notifications("notifications/elicitation/complete")
        assert len(completed) == paid


async def test_the_end_of_a_visit_is_told_to_who_was_asked(connect: Connect) -> None:
    client, other = await connect("2025-11-25"), await connect("2025-11-25")
    streams = [await each.standing() for each in (client, other)]
    found = await asked(client, "visits", answering(elicitation={"action": "accept"}))
    assert found.notifications("notifications/elicitation/complete")
    for stream in streams:
        await stream.quiet()
        await stream.leave()


# -- sampling -------------------------------------------------------------------


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_sampling(client: Client) -> None:
    found = await asked(client, "samples", answering(sampling=SAMPLED))
    assert found.text == "assistant small text: hello"
    (question,) = found.questions
    assert question["method"] == "sampling/createMessage"
    content = {"type": "text", "text": "Say something."}
    assert question["params"] == {
        "messages": [{"role": "user", "content": content}],
        "maxTokens": 10,
    }
    found = await asked(client, "samples_sync", answering(sampling=SAMPLED))
    assert found.text == "hello"
    assert found.questions == [question], "What was asked before is not asked again."


async def test_a_model_that_always_wants_a_tool(stateful: Client) -> None:
    wanted = {"type": "tool_use", "id": "1", "name": "find", "input": {}}
    answer = {**SAMPLED, "content": wanted}
    found = await asked(stateful, "samples_on", answering(sampling=answer))
    assert "samples_on failed" in failed(found)
    assert len(found.questions) == MAX_TOOL_ROUNDS + 1


@pytest.mark.parametrize("version", REVISIONS)
async def test_all_options_of_sampling(client: Client) -> None:
    tools = "tools" in client.revision.fields["sampling"]
    found = await asked(
        client, "samples", answering(sampling=SAMPLED), long=True, tools=tools
    )
    assert found.text == "assistant small text: hello"
    params = found.questions[0]["params"]
    assert params["systemPrompt"] == "Be brief."
    assert params["temperature"] == 0.5
    assert params["stopSequences"] == ["."]
    assert params["modelPreferences"] == {
        "hints": [{"name": "small"}],
        "costPriority": 1,
        "speedPriority": 0.5,
        "intelligencePriority": 0,
    }
    assert params["metadata"] == {"a": 1}
    assert ("tools" in params) == ("toolChoice" in params) == tools
    kinds = [
        each["type"]
        for message in params["messages"]
        for each in (
            message["content"]
            if isinstance(message["content"], list)
            else [message["content"]]
        )
    ]
    known = client.revision.sampling_content
    spoken = ["text", "image", "tool_use", "tool_result", "audio", "resource_link"]
    assert kinds == [kind if kind in known else "text" for kind in spoken]
    if tools:
        assert params["tools"][0]["name"] == "find"
        assert params["toolChoice"] == {"mode": "auto"}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18"])
async def test_sampling_with_tools_of_older_revisions(
    client: Client, version: str
) -> None:
    found = await asked(client, "samples", answering(), long=True, tools=True)
    assert version in failed(found)
    assert found.questions == []


CONTENT: Final[list[tuple[JsonObject | list[JsonObject], str]]] = [
    ({"type": "image", "data": ENCODED, "mimeType": "image/png"}, "image"),
    ({"type": "audio", "data": ENCODED, "mimeType": "audio/wav"}, "audio"),
    (
        [
            {"type": "text", "text": "a", "_meta": {"x": 1}},
            {"type": "tool_use", "id": "1", "name": "find", "input": {}},
        ],
        "text,tool_use",
    ),
]


@pytest.mark.parametrize("version", URLS)
async def test_sampled_content(client: Client) -> None:
    for content, kinds in CONTENT:
        answer = {**SAMPLED, "content": content}
        found = await asked(client, "samples", answering(sampling=answer))
        assert found.text.startswith(f"assistant small {kinds}: ")


WRONG_SAMPLES: Final[list[JsonObject]] = [
    *({}, {**SAMPLED, "role": "system"}, {**SAMPLED, "model": None}),
    *({**SAMPLED, "content": None}, {**SAMPLED, "content": "hello"}),
    {**SAMPLED, "content": {"type": "text"}},
    {**SAMPLED, "content": {"type": "other"}},
    {**SAMPLED, "content": {"type": "image", "data": "%", "mimeType": 7}},
    {**SAMPLED, "content": [SAMPLED["content"], 7]},
]


async def test_samples_that_do_not_fit(stateful: Client) -> None:
    for answer in WRONG_SAMPLES:
        failed(await asked(stateful, "samples", answering(sampling=answer)))


async def test_stateless_samples_that_do_not_fit_are_asked_again(
    client: Client,
) -> None:
    answers = iter([*WRONG_SAMPLES, SAMPLED])
    found = await asked(client, "samples", lambda method, params: next(answers))
    assert found.text == "assistant small text: hello"
    assert len(found.questions) == len(WRONG_SAMPLES) + 1


# -- roots ----------------------------------------------------------------------

ROOTS: Final[JsonObject] = {
    "roots": [{"uri": "file:///home", "name": "Home"}, {"uri": "file:///tmp"}]
}


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_roots(client: Client) -> None:
    found = await asked(client, "roots", answering(roots=ROOTS))
    assert found.text == "file:///home=Home file:///tmp=None"
    assert found.questions == [{"method": "roots/list", "params": {}}]
    found = await asked(client, "roots_sync", answering(roots=ROOTS))
    assert found.text == "file:///home file:///tmp"


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_roots_are_never_kept(connect: Connect, version: str) -> None:
    """Whoever needs them is shown those of the moment, and nobody those of others."""
    clients = [await connect(version) for _ in range(2)]
    for number, client in enumerate(clients * 2):
        roots = {"roots": [{"uri": f"file:///{number}"}]}
        found = await asked(client, "roots", answering(roots=roots))
        assert found.text == f"file:///{number}=None"
    await clients[0].notify("notifications/roots/list_changed")
    found = await asked(clients[0], "roots", answering(roots={"roots": []}))
    assert found.result["content"] in ([], [{"type": "text", "text": ""}])


@pytest.mark.parametrize(
    "answer",
    [{}, {"roots": None}, {"roots": [7]}, {"roots": [{}]}, {"roots": [{"uri": 7}]}],
)
async def test_roots_that_do_not_fit(stateful: Client, answer: JsonObject) -> None:
    failed(await asked(stateful, "roots", answering(roots=answer)))


# -- several at once ------------------------------------------------------------


@pytest.mark.parametrize("version", URLS)
async def test_several_questions_at_once(client: Client) -> None:
    asked_before: list[str] = []

    def answer(method: str, params: JsonObject) -> JsonObject:
        asked_before.append(method)
        if method == "elicitation/create":
            content = {} if params["mode"] == "url" else {"content": {"item": "tea"}}
            return {"action": "accept", **content}
        return SAMPLED if method.startswith("sampling") else ROOTS

    found = await asked(client, "asks_many", answer)
    assert found.text == "order:Accepted,pay:Accepted,words:SamplingResult,places:list"
    assert sorted(asked_before) == [
        *("elicitation/create", "elicitation/create", "roots/list"),
        "sampling/createMessage",
    ]
    found = await asked(client, "asks_many_sync", answer)
    assert found.text == "order,places"


# -- what a client cannot answer ------------------------------------------------

INCAPABLE: Final[list[tuple[str, JsonObject, JsonObject]]] = [
    # tool, capabilities of the client, what is missing
    ("orders", {}, {"elicitation": {}}),
    ("orders", {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
    ("orders", {"elicitation": True}, {"elicitation": {}}),
    ("visits", {"elicitation": {}}, {"elicitation": {"url": {}}}),
    ("samples", {}, {"sampling": {}}),
    ("roots", {"sampling": {}}, {"roots": {}}),
]


@pytest.mark.parametrize("version", URLS)
async def test_what_the_client_did_not_declare(connect: Connect, version: str) -> None:
    for tool, capabilities, required in INCAPABLE:
        client = await connect(version, capabilities=capabilities)
        found = await client.call(tool)
        if client.revision.stateless:
            assert (found.status, found.error["code"]) == (400, -32021)
            assert found.error["data"] == {"requiredCapabilities": required}
        else:
            assert "capability" in failed(found)


@pytest.mark.parametrize(
    "declared", [{}, {"form": {}}, {"form": {}, "url": {}}, {"other": {}}]
)
async def test_what_stands_for_forms(connect: Connect, declared: JsonObject) -> None:
    answer = answering(elicitation={"action": "decline"})
    for version in FORMS:
        client = await connect(version, capabilities={"elicitation": declared})
        if version != "2025-06-18" and declared == {"other": {}}:
            assert "result" not in (await client.call("orders")).answer or (
                failed(await client.call("orders"))
            )
        else:
            assert (await asked(client, "orders", answer)).text == "declined"


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26"])
@pytest.mark.parametrize("tool", ["orders", "orders_sync", "visits"])
async def test_revisions_without_elicitation(
    client: Client, version: str, tool: str
) -> None:
    assert version in failed(await client.call(tool))


async def test_a_revision_without_urls(connect: Connect) -> None:
    client = await connect("2025-06-18")
    assert "by URL" in failed(await client.call("visits"))


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_user_code_may_catch_it(connect: Connect, version: str) -> None:
    client = await connect(version, capabilities={})
    assert (await client.call("offers")).text == "cannot: {'elicitation': {}}"


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
async def test_a_client_that_takes_json_alone(connect: Connect, version: str) -> None:
    client = await connect(version, headers={"accept": "application/json"})
    for tool in ("orders", "orders_sync", "samples", "roots"):
        assert "single JSON answer" in failed(await client.call(tool))
    assert (await client.call("offers")).text == "cannot: {}"


async def test_json_alone_is_enough_for_retries(connect: Connect) -> None:
    client = await connect(NEWEST, headers={"accept": "application/json"})
    answer: JsonObject = {"action": "accept", "content": {"item": "tea"}}
    found = await asked(client, "orders", answering(elicitation=answer))
    assert found.text == "1 tea"


async def test_a_url_for_one_who_takes_json_alone(connect: Connect) -> None:
    client = await connect("2025-11-25", headers={"accept": "application/json"})
    found = await client.call("visits")
    assert (found.status, found.error["code"]) == (200, -32042)
    (elicitation,) = found.error["data"]["elicitations"]
    assert elicitation["url"] == "https://example.org/pay"
    assert elicitation["mode"] == "url"


# -- the words of a question ----------------------------------------------------

EVERYBODY: Final = KnownClient(capabilities=EVERYTHING)
LATEST: Final = REVISIONS[NEWEST]


def prepared(question: Question[Any], key: str = "key") -> PreparedQuestion:
    return prepare_question(key, question, LATEST, EVERYBODY)


def test_digests_tell_questions_apart() -> None:
    questions: list[Question[Any]] = [
        *(Elicit("A?", Order), Elicit("B?", Order)),
        Elicit("A?", {"type": "object", "properties": {"a": {"type": "string"}}}),
        ElicitUrl("A?", "https://example.org"),
        *(ElicitUrl("A?", "https://example.org/b"), Sample("A?", max_tokens=1)),
        *(Sample("A?", max_tokens=2), Roots()),
    ]
    digests = {prepared(each).question_digest for each in questions}
    assert len(digests) == len(questions)
    assert {prepared(each, "other").question_digest for each in questions} == digests


def test_only_forms_may_be_answered_before_they_are_asked() -> None:
    assert prepared(Elicit("A?", Order)).trusted_without_state
    for question in (
        ElicitUrl("A?", "https://a.b"),
        Sample("A?", max_tokens=1),
        Roots(),
    ):
        assert not prepared(question).trusted_without_state


@pytest.mark.parametrize(
    ("capabilities", "path", "missing"),
    [
        ({"a": {"b": {}}}, ("a", "b"), None),
        ({"a": {}}, ("a",), None),
        ({}, ("a",), {"a": {}}),
        ({"a": {}}, ("a", "b"), {"a": {"b": {}}}),
        ({"a": None}, ("a",), {"a": {}}),
        ({"a": {"b": True}}, ("a", "b"), {"a": {"b": {}}}),
    ],
)
def test_require(
    capabilities: Mapping[str, object], path: tuple[str, ...], missing: object
) -> None:
    client = KnownClient(capabilities=capabilities)
    if missing is None:
        require_capability(client, *path)
        return
    with pytest.raises(ClientCannot) as caught:
        require_capability(client, *path)
    assert caught.value.required == missing


def test_few_preferences() -> None:
    params = prepared(
        Sample("A?", max_tokens=1, preferences=ModelPreferences(cost=0))
    ).params
    assert params["modelPreferences"] == {"costPriority": 0}


@pytest.mark.parametrize("cost", [-0.1, 1.1, 2, float("nan")])
def test_preferences_are_from_0_to_1(cost: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        prepared(Sample("A?", max_tokens=1, preferences=ModelPreferences(cost=cost)))


def test_parsed_answers_have_types() -> None:
    form = prepared(Elicit("A?", Order))
    assert form.parse({"action": "accept", "content": {"item": "a"}}) == Accepted(
        Order("a")
    )
    assert form.parse({"action": "decline"}) == Declined()
    assert form.parse({"action": "cancel"}) == Cancelled()
    sampled = prepared(Sample("A?", max_tokens=1)).parse(
        {**SAMPLED, "stopReason": "endTurn"}
    )
    assert isinstance(sampled, SamplingResult)
    assert (sampled.text, sampled.stop_reason) == ("hello", "endTurn")


RECEIVED: Final[list[tuple[JsonObject, str]]] = [
    ({"type": "text", "text": "a"}, "a"),
    ({"type": "image", "data": "AAE=", "mimeType": "image/png"}, "data:image/png;"),
    ({"type": "audio", "data": "AAE=", "mimeType": "audio/wav"}, "data:audio/wav;"),
    ({"type": "resource", "resource": {"uri": "a:b", "text": "said"}}, "said"),
    ({"type": "resource", "resource": {"uri": "a:b", "blob": "AAE="}}, "<a:b>"),
    ({"type": "resource_link", "uri": "a:b", "name": "c"}, "c <a:b>"),
    ({"type": "tool_use", "id": "1", "name": "f", "input": {}}, "[tool use 1: f]"),
    (
        {
            "type": "tool_result",
            "toolUseId": "1",
            "content": [{"type": "text", "text": "a"}],
            "isError": True,
            "structuredContent": {"a": 1},
        },
        "[tool result 1]\na",
    ),
]


@pytest.mark.parametrize(("wire", "text"), RECEIVED)
def test_received_blocks(wire: JsonObject, text: str) -> None:
    block: Block = sampled_block(wire)
    assert block.type == wire["type"]
    assert block.as_text().startswith(text)


@pytest.mark.parametrize(
    "wire",
    [
        *(None, "text", {}, {"type": "text"}, {"type": "video"}),
        {"type": "image", "data": "AAE="},
        {"type": "image", "data": "x", "mimeType": "a"},
        {"type": "resource", "resource": {"uri": "a:b"}},
        *({"type": "resource", "resource": None}, {"type": "text", "text": 7}),
        {"type": "image", "data": "AAE=", "mimeType": 7},
        {"type": "image", "data": "A A E =", "mimeType": "a"},
        {"type": "resource", "resource": {"uri": "a:b", "text": None}},
        {"type": "tool_use", "id": 1, "name": "f", "input": {}},
        {"type": "tool_use", "id": "1", "name": "f", "input": []},
        {"type": "tool_result", "toolUseId": "1", "content": [7]},
        {"type": "tool_result", "toolUseId": "1", "content": 7},
    ],
)
def test_blocks_that_nobody_knows(wire: object) -> None:
    with pytest.raises(ClientRefused):
        sampled_block(wire)


# -- deprecations ----------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "_logged_uses", set())


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage().split()[5].strip(",")
        for record in caplog.records
        if record.name == "mcp_app.server"
    ]


async def test_it_is_said_once(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    level = {"_meta": {f"{PREFIX}logLevel": "debug"}}
    for _ in range(2):
        for tool, capability in (
            ("samples", "sampling"),
            ("roots", "roots"),
            ("logs_sync", "logging"),
        ):
            await client.request("tools/call", {"name": tool, **level})
            assert capability in warnings(caplog)
    assert sorted(warnings(caplog)) == ["logging", "roots", "sampling"]


async def test_nothing_is_said_of_what_a_client_does_not_want(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    await client.request("tools/call", {"name": "logs_sync"})
    assert warnings(caplog) == []


@pytest.mark.parametrize("revision", STATEFUL.values(), ids=lambda each: each.version)
@pytest.mark.parametrize("capability", ["logging", "roots", "sampling"])
def test_no_older_revision_deprecates_it(
    revision: Revision, capability: str, caplog: pytest.LogCaptureFixture
) -> None:
    questions.note_deprecated_use(revision, capability)
    assert warnings(caplog) == []
