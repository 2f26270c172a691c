"""The five revisions against their official schemas: what each knows, and no more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_app.protocol.revisions import (
    LATEST,
    LATEST_STATEFUL,
    REVISIONS,
    STATEFUL,
    STATELESS,
    SUPPORTED_VERSIONS,
    Revision,
)

SCHEMAS: Final = Path(__file__).parent.parent / "wire" / "schemas"

OBJECTS: Final[Mapping[str, tuple[str, ...]]] = {
    "tool": ("Tool",),
    "resource": ("Resource",),
    "template": ("ResourceTemplate",),
    "prompt": ("Prompt",),
    "prompt_argument": ("PromptArgument",),
    "contents": ("TextResourceContents", "BlobResourceContents"),
    "implementation": ("Implementation",),
    "capabilities": ("ServerCapabilities",),
    "progress": ("ProgressNotificationParams", "ProgressNotification"),
    "sampling": ("CreateMessageRequestParams", "CreateMessageRequest"),
    "block": (
        *("TextContent", "ImageContent", "AudioContent", "EmbeddedResource"),
        "ResourceLink",
    ),
    "annotations": ("Annotations", "Annotated"),
}
TASKS: Final = {
    "2025-11-25": {"tasks/get", "tasks/list", "tasks/result", "tasks/cancel"},
    "2026-07-28": {"tasks/get", "tasks/update", "tasks/cancel"},
}
"""Those of the extension have a schema of their own."""
SKILLS: Final = {"skills/list", "skills/get", "resources/directory/read"}
UNUSED: Final = {
    # What this server has nothing to say in.
    "capabilities": {"experimental"},
    "progress": {"_meta"},
    "sampling": {"_meta", "task"},
}
BLOCK_TYPES: Final = {
    "TextContent": "text",
    "ImageContent": "image",
    "AudioContent": "audio",
    "EmbeddedResource": "resource",
    "ResourceLink": "resource_link",
    "ToolUseContent": "tool_use",
    "ToolResultContent": "tool_result",
}


def definitions(version: str) -> dict[str, Any]:
    schema = json.loads((SCHEMAS / f"{version}.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = schema.get("$defs") or schema["definitions"]
    return found


def members(known: Mapping[str, Any], name: str) -> set[str]:
    properties = known.get(name, {}).get("properties", {})
    if "params" in properties:
        properties = properties["params"].get("properties", {})
    return set(properties)


def methods(known: Mapping[str, Any], union: str) -> set[str]:
    references = known.get(union, {}).get("anyOf", [])
    names = [each["$ref"].rpartition("/")[2] for each in references]
    found = {known[name]["properties"]["method"]["const"] for name in names}
    return {each for each in found if "tasks/" not in each}


def test_methods_are_those_of_the_schema(revision: Revision) -> None:
    known = definitions(revision.version)
    of_tasks = {each for each in revision.methods if each.startswith("tasks/")}
    of_events = {each for each in revision.methods if each.startswith("events/")}
    assert ("events/stream" in of_events) is revision.stateless
    of_skills = {each for each in revision.methods if each in SKILLS}
    assert of_skills == (SKILLS if revision.version >= "2025-11-25" else set())
    others = revision.methods - of_tasks - of_events - of_skills
    assert others == methods(known, "ClientRequest")
    assert of_tasks == TASKS.get(revision.version, set())
    told = {"notifications/tasks"} if revision.task_extension else set()
    told |= {each for each in revision.notifications if "/events/" in each}
    assert revision.notifications - told == methods(known, "ServerNotification")
    asked = methods(known, "ServerRequest") - {"ping"}
    # The stateless era has no requests of the server: they are put in results.
    embedded = {"elicitation/create", "roots/list", "sampling/createMessage"}
    assert revision.questions == (embedded if revision.stateless else asked)


def test_members_are_those_of_the_schema(revision: Revision) -> None:
    known = definitions(revision.version)
    for kind in OBJECTS:
        names: set[str] = set().union(*(members(known, name) for name in OBJECTS[kind]))
        if kind == "annotations" and "Annotations" not in known:
            inner = known["Annotated"]["properties"]["annotations"]["properties"]
            names = set(inner)
        # Clients that read a sketch of events look for a capability of this name.
        added = {"events"} if kind == "capabilities" else set()
        if kind == "capabilities" and revision.version == "2025-11-25":
            # Clients of skills look for them where 2026-07-28 has them.
            added.add("extensions")
        assert revision.fields[kind] == names - UNUSED.get(kind, set()) | added, kind


def test_content_is_that_of_the_schema(revision: Revision) -> None:
    known = definitions(revision.version)
    defined = {kind for name, kind in BLOCK_TYPES.items() if name in known}
    sampled = {"tool_use", "tool_result"}
    assert revision.content == defined - sampled
    assert revision.sampling_content == defined - {"resource", "resource_link"}


def test_codes_are_those_of_the_specification(revision: Revision) -> None:
    assert revision.missing_resource_code == (-32602 if revision.stateless else -32002)
    assert revision.unknown_method_status == (404 if revision.stateless else 200)


FLAGS: Final[list[tuple[str, list[bool]]]] = [
    # in the order of the revisions
    ("sessions", [True, True, True, True, False]),
    ("batches", [False, True, False, False, False]),
    ("version_header", [False, False, True, True, True]),
    ("null_error_id", [True, True, True, False, False]),
    ("argument_errors_as_results", [False, False, False, True, True]),
    ("sampling_content_lists", [False, False, False, True, True]),
    ("elicitation_mode_member", [False, False, False, True, True]),
    ("elicitation_defaults", [False, False, False, True, True]),
    ("elicitation_choices", [False, False, False, True, True]),
    ("elicitation_identifiers", [False, False, False, True, False]),
    ("structured_content", [False, False, True, True, True]),
    ("boolean_subschemas", [False, False, False, False, True]),
    ("routing_headers", [False, False, False, False, True]),
    ("result_type", [False, False, False, False, True]),
    ("cache_hints", [False, False, False, False, True]),
    ("server_info_in_results", [False, False, False, False, True]),
    ("log_level_per_request", [False, False, False, False, True]),
    ("disconnect_cancels", [False, False, False, False, True]),
]


@pytest.mark.parametrize(("flag", "values"), FLAGS)
def test_flags(flag: str, values: list[bool]) -> None:
    assert [getattr(each, flag) for each in REVISIONS.values()] == values


def test_eras() -> None:
    assert list(REVISIONS) == sorted(REVISIONS)
    assert tuple(reversed(list(REVISIONS))) == SUPPORTED_VERSIONS
    assert {**STATEFUL, **STATELESS} == REVISIONS
    assert not set(STATEFUL) & set(STATELESS)
    assert (LATEST.version, LATEST_STATEFUL.version) == ("2026-07-28", "2025-11-25")
    assert all(each.stateless is not each.sessions for each in REVISIONS.values())


def test_a_revision_is_a_key(revision: Revision) -> None:
    assert {revision: 1}[REVISIONS[revision.version]] == 1
    assert len({hash(each) for each in REVISIONS.values()}) == len(REVISIONS)
