"""The five protocol revisions as data: each is the previous one plus its changes.

No code compares version strings; it asks a `Revision` for a rule.  Sources: the
`changelog.mdx` and `schema.json` of each revision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

Fields = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What one dated version of the protocol allows and asks for."""

    version: str
    methods: frozenset[str]
    """Requests that a client may send."""
    notifications: frozenset[str]
    """Notifications that a server may send."""
    questions: frozenset[str]
    """Requests of a server to a client, alone or inside an `InputRequiredResult`."""
    content: frozenset[str]
    """Types of content blocks."""
    sampling_content: frozenset[str]
    """Types of content blocks in a sampling message."""
    fields: Fields
    """Members of each object that a server sends; others are left out."""
    input_required: frozenset[str] = frozenset()
    """Requests that may be answered with an `InputRequiredResult`."""

    deprecated: frozenset[str] = frozenset()
    """Capabilities that exist only for clients of older revisions."""

    sessions: bool = True
    batches: bool = False
    resumable: bool = False
    """Events of a stream may have ids, which a client returns in `Last-Event-ID`."""
    priming: bool = False
    """A stream begins with an event that has an id and no data (SEP-1699)."""
    version_header: bool = False
    """`MCP-Protocol-Version` on every request after `initialize`."""
    null_error_id: bool = True
    """An error without a readable request id has `id: null` instead of no `id`."""
    argument_errors_as_results: bool = False
    """Arguments that break a tool's schema are an `isError` result (SEP-1303)."""
    sampling_content_lists: bool = False
    elicitation_modes: frozenset[str] = frozenset()
    elicitation_mode_member: bool = False
    """An elicitation says by its member `mode` whether it is a form or a URL."""
    elicitation_defaults: bool = False
    """Defaults of strings, numbers and enums (SEP-1034)."""
    elicitation_choices: bool = False
    """Titled and multiple choices (SEP-1330)."""
    elicitation_identifiers: bool = False
    """URL elicitations have an id, a completion notification and error -32042."""
    structured_content: bool = False
    boolean_subschemas: bool = False
    """A property of a tool's schema may be `true` or `false`."""
    routing_headers: bool = False
    """`Mcp-Method`, `Mcp-Name` and others repeat members of the body."""
    result_type: bool = False
    cache_hints: bool = False
    server_info_in_results: bool = False
    log_level_per_request: bool = False
    disconnect_cancels: bool = False
    """A client cancels a call if it closes the connection of the answer."""
    task_requests: bool = False
    """A client asks for a task with its call (basic/utilities/tasks)."""
    task_extension: bool = False
    """The server makes tasks for clients that declare the extension."""
    unknown_method_status: int = 200
    missing_resource_code: int = -32002

    @property
    def stateless(self) -> bool:
        """Whether each request carries all that is needed to serve it."""
        return not self.sessions

    def __hash__(self) -> int:
        return hash(self.version)

    def known_members(
        self, kind: str, members: Mapping[str, object]
    ) -> dict[str, object]:
        """Return the members that an object of this kind has in this revision."""
        names = self.fields[kind]
        return {name: value for name, value in members.items() if name in names}


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _with_fields(fields: Fields, **added: set[str]) -> Fields:
    return MappingProxyType(
        {**fields, **{kind: fields[kind] | names for kind, names in added.items()}}
    )


_LISTED = {"description", "name"}

V2024_11_05 = Revision(
    version="2024-11-05",
    methods=_names("""
        initialize ping tools/list tools/call resources/list resources/templates/list
        resources/read resources/subscribe resources/unsubscribe prompts/list
        prompts/get completion/complete logging/setLevel
        events/list events/poll events/subscribe events/unsubscribe
    """),
    notifications=_names("""
        notifications/cancelled notifications/progress notifications/message
        notifications/tools/list_changed notifications/resources/list_changed
        notifications/resources/updated notifications/prompts/list_changed
    """),
    questions=frozenset({"sampling/createMessage", "roots/list"}),
    content=frozenset({"text", "image", "resource"}),
    sampling_content=frozenset({"text", "image"}),
    fields=MappingProxyType(
        {
            "tool": frozenset(_LISTED | {"inputSchema"}),
            "resource": frozenset(_LISTED | {"uri", "mimeType", "size", "annotations"}),
            "template": frozenset(_LISTED | {"uriTemplate", "mimeType", "annotations"}),
            "prompt": frozenset(_LISTED | {"arguments"}),
            "prompt_argument": frozenset(_LISTED | {"required"}),
            "annotations": frozenset({"audience", "priority"}),
            "block": frozenset(
                {"type", "text", "data", "mimeType", "resource", "annotations"}
            ),
            "contents": frozenset({"uri", "mimeType", "text", "blob"}),
            "implementation": frozenset({"name", "version"}),
            "capabilities": _names("logging prompts resources tools events"),
            "progress": frozenset({"progressToken", "progress", "total"}),
            "sampling": _names("""
                messages maxTokens systemPrompt temperature stopSequences
                modelPreferences includeContext metadata
            """),
        }
    ),
)

V2025_03_26 = replace(
    V2024_11_05,
    version="2025-03-26",
    batches=True,
    resumable=True,
    content=V2024_11_05.content | {"audio"},
    sampling_content=V2024_11_05.sampling_content | {"audio"},
    fields=_with_fields(
        V2024_11_05.fields,
        tool={"annotations"},
        capabilities={"completions"},
        progress={"message"},
    ),
)

V2025_06_18 = replace(
    V2025_03_26,
    version="2025-06-18",
    batches=False,
    version_header=True,
    structured_content=True,
    questions=V2025_03_26.questions | {"elicitation/create"},
    elicitation_modes=frozenset({"form"}),
    content=V2025_03_26.content | {"resource_link"},
    fields=_with_fields(
        V2025_03_26.fields,
        tool={"title", "outputSchema", "_meta"},
        resource={"title", "_meta"},
        template={"title", "_meta"},
        prompt={"title", "_meta"},
        prompt_argument={"title"},
        annotations={"lastModified"},
        block={"uri", "name", "title", "description", "size", "_meta"},
        contents={"_meta"},
        implementation={"title"},
    ),
)

V2025_11_25 = replace(
    V2025_06_18,
    version="2025-11-25",
    methods=V2025_06_18.methods
    | {"tasks/get", "tasks/list", "tasks/result", "tasks/cancel"}
    | {"skills/list", "skills/get", "resources/directory/read"},
    task_requests=True,
    priming=True,
    null_error_id=False,
    argument_errors_as_results=True,
    notifications=V2025_06_18.notifications | {"notifications/elicitation/complete"},
    elicitation_modes=frozenset({"form", "url"}),
    elicitation_mode_member=True,
    elicitation_defaults=True,
    elicitation_choices=True,
    elicitation_identifiers=True,
    sampling_content=V2025_06_18.sampling_content | {"tool_use", "tool_result"},
    sampling_content_lists=True,
    fields=_with_fields(
        V2025_06_18.fields,
        tool={"icons", "execution"},
        resource={"icons"},
        template={"icons"},
        prompt={"icons"},
        block={"icons"},
        implementation={"description", "icons", "websiteUrl"},
        # `extensions` is of 2026-07-28, but clients with skills read it here, too.
        capabilities={"tasks", "extensions"},
        sampling={"tools", "toolChoice"},
    ),
)

V2026_07_28 = replace(
    V2025_11_25,
    version="2026-07-28",
    sessions=False,
    resumable=False,
    priming=False,
    methods=(
        V2025_11_25.methods
        | {"server/discover", "subscriptions/listen", "tasks/update", "events/stream"}
    )
    - _names("""
        initialize ping logging/setLevel resources/subscribe resources/unsubscribe
        tasks/list tasks/result
    """),
    task_requests=False,
    task_extension=True,
    notifications=(
        V2025_11_25.notifications
        | {"notifications/subscriptions/acknowledged", "notifications/tasks"}
        | _names("""
            notifications/events/list_changed notifications/events/active
            notifications/events/event notifications/events/heartbeat
            notifications/events/error notifications/events/terminated
        """)
    )
    - {"notifications/elicitation/complete"},
    input_required=frozenset({"tools/call", "resources/read", "prompts/get"}),
    deprecated=frozenset({"logging", "roots", "sampling"}),
    elicitation_identifiers=False,
    boolean_subschemas=True,
    routing_headers=True,
    result_type=True,
    cache_hints=True,
    server_info_in_results=True,
    log_level_per_request=True,
    disconnect_cancels=True,
    unknown_method_status=404,
    missing_resource_code=-32602,
    fields=MappingProxyType(
        {
            **V2025_11_25.fields,
            "tool": V2025_11_25.fields["tool"] - {"execution"},
            "capabilities": V2025_11_25.fields["capabilities"] - {"tasks"},
        }
    ),
)

_ALL = (V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28)
REVISIONS: Mapping[str, Revision] = MappingProxyType(
    {revision.version: revision for revision in _ALL}
)
STATEFUL: Mapping[str, Revision] = MappingProxyType(
    {version: known for version, known in REVISIONS.items() if known.sessions}
)
STATELESS: Mapping[str, Revision] = MappingProxyType(
    {version: known for version, known in REVISIONS.items() if known.stateless}
)
SUPPORTED_VERSIONS: tuple[str, ...] = tuple(reversed(tuple(REVISIONS)))
"""Newest first, as `server/discover` and error -32022 name them."""
LATEST_STATEFUL = V2025_11_25
LATEST = V2026_07_28
