"""Questions to the client: how each is asked, and what its answer means.

In the stateful era a question is a request on the stream of the call; in the
stateless era it ends the request, and the answer comes with the retry.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

from mcp_app.catalog import forms
from mcp_app.interface.context import Answer, Client
from mcp_app.interface.errors import ClientCannot, ClientRefused
from mcp_app.interface.questions import (
    Accepted,
    Cancelled,
    Declined,
    Elicit,
    ElicitUrl,
    ModelPreferences,
    Question,
    Root,
    Roots,
    Sample,
    Sampled,
    SamplingMessage,
)
from mcp_app.protocol import jsonrpc, listing
from mcp_app.protocol.content import (
    Audio,
    Block,
    EmbeddedResource,
    Image,
    ResourceContents,
    ResourceLink,
    Text,
    ToolResult,
    ToolUse,
    sampling_block_to_wire,
)
from mcp_app.protocol.jsonrpc import JsonObject
from mcp_app.protocol.revisions import Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A question in the words of a revision.

    `trusted_without_state` tells whether an answer that comes unasked may be used.
    """

    key: str
    method: str
    params: JsonObject
    parse: Callable[[JsonObject], Answer]
    trusted_without_state: bool = False

    @property
    def digest(self) -> str:
        """Identifies what is asked, whatever the key."""
        return sha256(jsonrpc.canonical([self.method, self.params])).hexdigest()

    def request(self) -> JsonObject:
        """Return an `InputRequest`."""
        return {"method": self.method, "params": self.params}


def prepare(
    key: str, question: Question[Any], revision: Revision, client: Client
) -> Prepared:
    """Put a question into the revision's words; raise `ClientCannot`."""
    return _PREPARE[type(question)](key, question, revision, client)


def require(client: Client, *path: str) -> None:
    """Raise unless the client declared a capability, such as "sampling", "tools"."""
    found: object = client.capabilities
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            required: JsonObject = {}
            for each in reversed(path):
                required = {each: required}
            raise ClientCannot(
                f"The client did not declare the capability {'.'.join(path)!r}.",
                required,
            )


def _require_method(revision: Revision, method: str, *path: str) -> None:
    if method not in revision.questions:
        raise ClientCannot(
            f"Protocol revision {revision.version} has no {method!r}.",
            {path[0]: {}},
        )


def _elicit(
    key: str, question: Elicit[Any], revision: Revision, client: Client
) -> Prepared:
    _require_method(revision, "elicitation/create", "elicitation")
    require(client, "elicitation")
    declared = client.capabilities["elicitation"]
    if isinstance(declared, Mapping) and declared and "form" not in declared:
        # An empty object stands for forms (client/elicitation, "Capabilities").
        require(client, "elicitation", "form")
    form = forms.form_schema(question.form)
    params: JsonObject = {
        "message": question.message,
        "requestedSchema": forms.for_revision(form.schema, revision),
    }
    if revision.elicitation_mode_member:
        params["mode"] = "form"
    return Prepared(
        key=key,
        method="elicitation/create",
        params=params,
        parse=lambda result: _elicited(result, form.parse),
        trusted_without_state=True,
    )


def _elicited(result: JsonObject, parse: Callable[[JsonObject], Any]) -> Answer:
    action = result.get("action")
    if action == "decline":
        return Declined()
    if action == "cancel":
        return Cancelled()
    # Some clients send the content alone: that is an accepted form.
    if action not in ("accept", None):
        raise ClientRefused(
            "An elicitation's action must be accept, decline or cancel."
        )
    content = result.get("content")
    if not isinstance(content, dict):
        raise ClientRefused("An accepted elicitation must have content, an object.")
    try:
        return Accepted(parse(content))
    except forms.FormError as error:
        raise ClientRefused(str(error)) from None


def _elicit_url(
    key: str, question: ElicitUrl, revision: Revision, client: Client
) -> Prepared:
    _require_method(revision, "elicitation/create", "elicitation")
    if "url" not in revision.elicitation_modes:
        raise ClientCannot(
            f"Protocol revision {revision.version} has no elicitation by URL.",
            {"elicitation": {"url": {}}},
        )
    require(client, "elicitation", "url")
    params: JsonObject = {
        "mode": "url",
        "message": question.message,
        "url": question.url,
    }
    if revision.elicitation_identifiers:
        # The same question keeps its id, so that a completion can be matched.
        params["elicitationId"] = sha256(
            jsonrpc.canonical([key, question.message, question.url])
        ).hexdigest()[:32]
    return Prepared(
        key=key,
        method="elicitation/create",
        params=params,
        parse=lambda result: _elicited({**result, "content": {}}, lambda _: None),
    )


def _roots(key: str, _: Roots, revision: Revision, client: Client) -> Prepared:
    _require_method(revision, "roots/list", "roots")
    require(client, "roots")
    return Prepared(key=key, method="roots/list", params={}, parse=_rooted)


def _rooted(result: JsonObject) -> Sequence[Root]:
    roots = result.get("roots")
    if not isinstance(roots, list):
        raise ClientRefused("The answer to roots/list must have roots, a list.")
    if not all(isinstance(each, dict) and "uri" in each for each in roots):
        raise ClientRefused("Each root must be an object with a uri.")
    return [Root(uri=str(each["uri"]), name=each.get("name")) for each in roots]


def _sample(key: str, question: Sample, revision: Revision, client: Client) -> Prepared:
    require(client, "sampling")
    if question.tools:
        require(client, "sampling", "tools")
    params: JsonObject = {
        "messages": _conversation(question.messages, revision),
        "maxTokens": question.max_tokens,
        "systemPrompt": question.system,
        "temperature": question.temperature,
        "stopSequences": list(question.stop_sequences) or None,
        "modelPreferences": _preferences(question.preferences),
        "metadata": question.metadata,
        "tools": [listing.tool(tool, revision) for tool in question.tools] or None,
        "toolChoice": question.tool_choice and {"mode": question.tool_choice},
    }
    given = {name: value for name, value in params.items() if value is not None}
    return Prepared(
        key=key,
        method="sampling/createMessage",
        params=revision.keep("sampling", given),
        parse=_sampled,
    )


def _preferences(preferences: ModelPreferences | None) -> JsonObject | None:
    if preferences is None:
        return None
    shown = {
        "hints": [{"name": name} for name in preferences.hints] or None,
        "costPriority": preferences.cost,
        "speedPriority": preferences.speed,
        "intelligencePriority": preferences.intelligence,
    }
    return {name: value for name, value in shown.items() if value is not None}


def _conversation(
    messages: str | Sequence[SamplingMessage], revision: Revision
) -> list[JsonObject]:
    if isinstance(messages, str):
        messages = [SamplingMessage(role="user", content=[Text(messages)])]
    wire: list[JsonObject] = []
    for message in messages:
        blocks = [sampling_block_to_wire(each, revision) for each in message.content]
        if len(blocks) > 1 and revision.sampling_content_lists:
            wire.append({"role": message.role, "content": blocks})
        else:
            # Before 2025-11-25 a message has one block: the others follow it.
            wire += [{"role": message.role, "content": each} for each in blocks]
    return wire


def _sampled(result: JsonObject) -> Sampled:
    role, content = result.get("role"), result.get("content")
    blocks = content if isinstance(content, list) else [content]
    if role not in ("user", "assistant") or not isinstance(result.get("model"), str):
        raise ClientRefused("A sampled message must have a role and a model.")
    return Sampled(
        role=role,
        content=[sampled_block(each) for each in blocks],
        model=result["model"],
        stop_reason=result.get("stopReason"),
    )


def sampled_block(wire: object) -> Block:
    """Return a content block from a client's JSON; raise `ClientRefused`."""
    if not isinstance(wire, dict):
        raise ClientRefused("Content must be an object with a type.")
    try:
        return _BLOCKS[str(wire.get("type"))](wire)
    except (KeyError, TypeError, ValueError):
        raise ClientRefused(
            f"Content of type {wire.get('type')!r} is not what the protocol says."
        ) from None


def _embedded(wire: JsonObject) -> EmbeddedResource:
    held = wire["resource"]
    blob = held.get("blob")
    return EmbeddedResource(
        ResourceContents(
            uri=held["uri"],
            text=held.get("text"),
            blob=b64decode(blob) if blob is not None else None,
            mime_type=held.get("mimeType"),
        )
    )


_BLOCKS: Mapping[str, Callable[[JsonObject], Block]] = {
    "text": lambda wire: Text(str(wire["text"])),
    "image": lambda wire: Image(b64decode(wire["data"]), wire["mimeType"]),
    "audio": lambda wire: Audio(b64decode(wire["data"]), wire["mimeType"]),
    "resource": _embedded,
    "resource_link": lambda wire: ResourceLink(wire["uri"], wire["name"]),
    "tool_use": lambda wire: ToolUse(wire["id"], wire["name"], wire["input"]),
    "tool_result": lambda wire: ToolResult(
        wire["toolUseId"],
        [sampled_block(each) for each in wire["content"]],
        wire.get("structuredContent"),
        bool(wire.get("isError")),
    ),
}

_PREPARE = cast(
    "Mapping[type, Callable[[str, Any, Revision, Client], Prepared]]",
    {Elicit: _elicit, ElicitUrl: _elicit_url, Roots: _roots, Sample: _sample},
)
