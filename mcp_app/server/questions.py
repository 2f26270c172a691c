"""Questions to the client: how each is asked, and what its answer means.

In the stateful era a question is a request on the stream of the call; in the
stateless era it ends the request, and the answer comes with the retry.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, cast
from urllib.parse import urlsplit

from mcp_app.catalog import forms
from mcp_app.catalog.form_urls import urls_in_question
from mcp_app.interface import rules
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
    SamplingResult,
)
from mcp_app.protocol import jsonrpc, results
from mcp_app.protocol.content import Block
from mcp_app.protocol.content_reading import read_block
from mcp_app.protocol.headers import is_loopback_host
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.revisions import Revision
from mcp_app.server.conversation import check_tools, conversation

# -- deprecations ----------------------------------------------------------------------
# Warns once per process if user code uses a deprecated capability (SEP-2577).

logger = logging.getLogger("mcp_app.server")

_INSTEAD: Final = {
    "logging": "use Python's `logging` for the site's log, or OpenTelemetry",
    "roots": "name files and folders in arguments, URIs or settings",
    "sampling": "call the model's provider directly",
}
_logged_uses: set[tuple[str, str]] = set()


def note_deprecated_use(revision: Revision, capability: str) -> None:
    """Log one warning if user code uses a deprecated capability."""
    use = (revision.version, capability)
    if capability not in revision.deprecated or use in _logged_uses:
        return
    _logged_uses.add(use)
    logger.warning(
        "Code of this site uses %s, which revision %s of the protocol deprecates: %s.",
        capability,
        revision.version,
        _INSTEAD[capability],
    )


# -- questions -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedQuestion:
    """A question in the form of a revision.

    If `trusted_without_state`, an answer without sealed state is accepted.  If
    `private`, the question is deleted with its call.
    """

    key: str
    method: str
    params: JsonObject
    parse: Callable[[JsonObject], Answer]
    trusted_without_state: bool = False
    private: bool = False

    @property
    def question_digest(self) -> str:
        """A digest of the question without its key and `elicitationId`."""
        params = {n: each for n, each in self.params.items() if n != "elicitationId"}
        return sha256(jsonrpc.canonical([self.method, params])).hexdigest()

    def members_with_urls(self) -> Sequence[str]:
        """Return which members of a form question have URLs: "message" and so on."""
        schema = self.params.get("requestedSchema")
        if schema is None:
            return ()
        return [*dict(urls_in_question(self.params["message"], schema))]

    def input_request(self) -> JsonObject:
        """Return an `InputRequest`."""
        return {"method": self.method, "params": self.params}


def prepare_question(
    key: str, question: Question[Any], revision: Revision, client: Client
) -> PreparedQuestion:
    """Put a question into the revision's form; raise `ClientCannot`."""
    return _PREPARE[type(question)](key, question, revision, client)


def require_capability(client: Client, *path: str) -> None:
    """Raise if the client did not declare a capability, named by its `path` in JSON."""
    capability: object = client.capabilities
    for name in path:
        capability = capability.get(name) if isinstance(capability, Mapping) else None
        if not isinstance(capability, Mapping):
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
            f"Protocol revision {revision.version} has no {method!r}.", {path[0]: {}}
        )


def can_answer(client: Client, revision: Revision, request: JsonObject) -> bool:
    """Whether a client can answer a question, even one prepared for another client."""
    method, params = request["method"], request["params"]
    path = [method.partition("/")[0]]
    mode = params.get("mode")
    # If the client declared an empty "elicitation", do not require "form".
    if mode == "url" or (mode and client.capabilities.get("elicitation")):
        path.append(mode)
    if "tools" in params:
        path.append("tools")
    try:
        _require_method(revision, method, *path)
        require_capability(client, *path)
    except ClientCannot:
        return False
    return True


def _prepare_elicitation(
    key: str, question: Elicit[Any], revision: Revision, client: Client
) -> PreparedQuestion:
    _require_method(revision, "elicitation/create", "elicitation")
    require_capability(client, "elicitation")
    if client.capabilities["elicitation"] and revision.elicitation_mode_member:
        # An empty object stands for forms (client/elicitation, "Capabilities").
        require_capability(client, "elicitation", "form")
    form = forms.form_schema(question.form)
    params: JsonObject = {
        "message": question.message,
        "requestedSchema": forms.for_revision(form.schema, revision),
    }
    if revision.elicitation_mode_member:
        params["mode"] = "form"
    return PreparedQuestion(
        key=key,
        method="elicitation/create",
        params=params,
        parse=lambda result: _parse_elicitation(result, form.parse),
        trusted_without_state=True,
    )


def _parse_elicitation(
    result: JsonObject, parse: Callable[[JsonObject], Any]
) -> Answer:
    action = result.get("action")
    if action == "decline":
        return Declined()
    if action == "cancel":
        return Cancelled()
    # Some clients send the content alone: this means an accepted form.
    if action not in ("accept", None):
        raise ClientRefused(
            "An elicitation's action must be accept, decline or cancel."
        )
    # A form without required fields may be accepted without content.
    content = result.get("content", {} if action == "accept" else None)
    if not isinstance(content, dict):
        raise ClientRefused("An accepted elicitation must have content, an object.")
    try:
        return Accepted(parse(content))
    except forms.FormError as error:
        raise ClientRefused(str(error)) from None


def _prepare_visit(
    key: str, question: ElicitUrl, revision: Revision, client: Client
) -> PreparedQuestion:
    _require_method(revision, "elicitation/create", "elicitation")
    if "url" not in revision.elicitation_modes:
        raise ClientCannot(
            f"Protocol revision {revision.version} has no elicitation by URL.",
            {"elicitation": {"url": {}}},
        )
    require_capability(client, "elicitation", "url")
    _check_url(question.url)
    params = {"mode": "url", "message": question.message, "url": question.url}
    if revision.elicitation_identifiers:
        params["elicitationId"] = secrets.token_hex(16)
    # An accepted visit has no content, but `_parse_elicitation` wants some.
    return PreparedQuestion(
        key=key,
        method="elicitation/create",
        params=params,
        parse=lambda result: _parse_elicitation(
            {**result, "content": {}}, lambda _: None
        ),
    )


def _check_url(url: str) -> None:
    """Raise ValueError if a URL is not safe for a person ("Safe URL Handling")."""
    parts = urlsplit(url)
    if rules.uri_problem(url) or parts.scheme not in ("http", "https"):
        raise ValueError(f"{url[:200]!r} is not a URL that a browser can open.")
    if parts.username is not None or not parts.hostname:
        raise ValueError(
            "The URL of an elicitation must have a host, and must not have a user."
        )
    if parts.scheme == "http" and not is_loopback_host(parts.hostname):
        raise ValueError(
            f"The URL {url[:200]!r} must be https, unless it is on this machine."
        )


def _prepare_roots(
    key: str, _: Roots, revision: Revision, client: Client
) -> PreparedQuestion:
    _require_method(revision, "roots/list", "roots")
    require_capability(client, "roots")
    note_deprecated_use(revision, "roots")
    return PreparedQuestion(key=key, method="roots/list", params={}, parse=_parse_roots)


def _parse_roots(result: JsonObject) -> Sequence[Root]:
    roots = result.get("roots")
    if not isinstance(roots, list):
        raise ClientRefused("The answer to roots/list must have roots, a list.")
    for root in roots:
        if not isinstance(root, dict) or type(root.get("uri")) is not str:
            raise ClientRefused("Each root must be an object with a uri, a string.")
    # Other schemes are not roots (client/roots, "Root").
    return [
        Root(uri=root["uri"], name=root.get("name"))
        for root in roots
        if root["uri"].startswith("file://")
    ]


def _prepare_sample(
    key: str, question: Sample, revision: Revision, client: Client
) -> PreparedQuestion:
    require_capability(client, "sampling")
    note_deprecated_use(revision, "sampling")
    if question.tools or question.tool_choice:
        _require_tools(revision, client)
    if question.tool_choice != "none":
        check_tools(question.messages, question.tools)
    params: JsonObject = {
        "messages": conversation(question.messages, revision),
        "maxTokens": question.max_tokens,
        "systemPrompt": question.system,
        "temperature": question.temperature,
        "stopSequences": list(question.stop_sequences) or None,
        "modelPreferences": _preferences(question.preferences),
        "metadata": question.metadata,
        "tools": [results.tool_to_wire(tool, revision) for tool in question.tools]
        or None,
        "toolChoice": question.tool_choice and {"mode": question.tool_choice},
    }
    present = {name: value for name, value in params.items() if value is not None}
    return PreparedQuestion(
        key=key,
        method="sampling/createMessage",
        params=revision.known_members("sampling", present),
        parse=_parse_sample,
        private=True,
    )


def _require_tools(revision: Revision, client: Client) -> None:
    if "tools" not in revision.fields["sampling"]:
        raise ClientCannot(
            f"Protocol revision {revision.version} has no sampling with tools.",
            {"sampling": {"tools": {}}},
        )
    require_capability(client, "sampling", "tools")


def _preferences(preferences: ModelPreferences | None) -> JsonObject | None:
    if preferences is None:
        return None
    hints = [{"name": name} for name in preferences.hints]
    members: JsonObject = {"hints": hints} if hints else {}
    for name, value in (
        ("costPriority", preferences.cost),
        ("speedPriority", preferences.speed),
        ("intelligencePriority", preferences.intelligence),
    ):
        if value is not None:
            if not 0 <= value <= 1:
                raise ValueError(f"The {name} is {value}: it must be from 0 to 1.")
            members[name] = value
    return members


def _parse_sample(result: JsonObject) -> SamplingResult:
    role, content = result.get("role"), result.get("content")
    blocks = content if isinstance(content, list) else [content]
    if role not in ("user", "assistant") or not isinstance(result.get("model"), str):
        raise ClientRefused("A sampled message must have a role and a model.")
    return SamplingResult(
        role=role,
        content=[sampled_block(block) for block in blocks],
        model=result["model"],
        stop_reason=result.get("stopReason"),
    )


def sampled_block(wire: object) -> Block:
    """Return a content block from a client's JSON; raise `ClientRefused`."""
    try:
        return read_block(wire)
    except ValueError as error:
        raise ClientRefused(str(error)) from None


_PREPARE = cast(
    "Mapping[type, Callable[[str, Any, Revision, Client], PreparedQuestion]]",
    {
        Elicit: _prepare_elicitation,
        ElicitUrl: _prepare_visit,
        Roots: _prepare_roots,
        Sample: _prepare_sample,
    },
)
