"""The state of a task: what its row keeps from run to run, and what a run takes of it.

If a task asks a question, its run ends, and its row keeps the question.  When all
answers are there, the function runs again from its start, as in a request of the
stateless era (`RoundTrip.ask_by_retry`).
"""

from __future__ import annotations

import secrets
from typing import Any

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.tasks import TaskRecord, TaskState, read_json
from mcp_app.server.conversation import RequestState
from mcp_app.server.round_trip import InputRequired
from mcp_app.server.stored_callers import caller_members


def first_state(earlier: RequestState | None, approval: JsonObject | None) -> str:
    """Return the state of a new task as text for its row."""
    if earlier is None:
        state = TaskState(round_trip=secrets.token_hex(16), approval=approval)
    else:
        answered = {key: list(each) for key, each in earlier.answered.items()}
        state = TaskState(round_trip=earlier.round_trip, answered=answered)
    return jsonrpc.write(state_members(state)).decode()


def state_members(state: TaskState) -> JsonObject:
    """Return a state as JSON for the row."""
    members = {name: getattr(state, name) for name in TaskState.__slots__}
    return {name: each for name, each in members.items() if each}


def request_state_of(state: TaskState) -> RequestState:
    """Return the state of a task as that of a retry."""
    questions = (state.questions or {}).values()
    return RequestState(
        round_trip=state.round_trip,
        open_digests={question["key"]: question["digest"] for question in questions},
        answered={key: tuple(each) for key, each in (state.answered or {}).items()},
    )


def parked_state(state: TaskState, needed: InputRequired) -> TaskState:
    """Return the state of a task whose run has ended with questions."""
    wire_keys, questions = [*(state.wire_keys or ())], {}
    # Clients know a question by its wire key, which a task uses for one question only.
    for key, request in needed.questions.items():
        wire_key, number = key, 1
        while wire_key in wire_keys:
            number += 1
            wire_key = f"{key}_{number}"
        wire_keys.append(wire_key)
        digest = needed.state.open_digests[key]
        questions[wire_key] = {"key": key, "digest": digest, "request": request}
    return TaskState(
        round_trip=state.round_trip,
        answered={key: list(each) for key, each in needed.state.answered.items()},
        questions=questions,
        wire_keys=wire_keys,
        approval=state.approval,
    )


def request_members(record: TaskRecord) -> dict[str, Any]:
    """Return the members of the `Request` that runs a task, from the task's row."""
    params: JsonObject = {
        "name": record.tool,
        "arguments": read_json(record.arguments),
    }
    questions = (record.read_state().questions or {}).values()
    replies = {each["key"]: each["reply"] for each in questions if "reply" in each}
    if replies:
        params["inputResponses"] = replies
    return {
        **caller_members(read_json(record.caller)),
        "id": record.public_id,
        "method": "tools/call",
        "params": params,
        "person": record.person,
    }
