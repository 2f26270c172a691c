"""What enforces the demands of coverage.csv, and what stands in its place without it.

Each function, method and table is the object itself: a name that the app has no more
does not type-check.  `disabling.all_guards` imports this, where it is asked for.
"""

from __future__ import annotations

from inspect import unwrap
from typing import Final

from mcp_app.account import connected_apps
from mcp_app.auth import (
    connections,
    issuer_tokens,
    principals,
    site_requests,
    token_cache,
)
from mcp_app.catalog import decorators, form_fields, outputs
from mcp_app.checks import settings
from mcp_app.egress import callbacks, sites
from mcp_app.interface import log_secrets, rules
from mcp_app.models import fields
from mcp_app.models.tasks import TaskQuerySet
from mcp_app.oauth import consent, endpoints
from mcp_app.process import rates
from mcp_app.process import webhooks as webhook_process
from mcp_app.protocol import (
    content,
    cursors,
    envelope,
    framing,
    headers,
    jsonrpc,
    negotiation,
    results,
    revisions,
    schema_graph,
    schemas,
    tasks,
    uri_templates,
    webhooks,
)
from mcp_app.protocol import texts as plain_text
from mcp_app.protocol.oauth import addresses as redirects
from mcp_app.protocol.oauth import clients, requests, texts
from mcp_app.server import (
    client_logging,
    coercion,
    context,
    conversation,
    dispatch,
    finding,
    questions,
    request,
    round_trip,
    subscriptions,
    task_states,
    waiting,
)
from mcp_app.server import tasks as task_calls
from mcp_app.server.handlers import HANDLERS, definitions, event_subscriptions, tools
from mcp_app.server.handlers import tasks as task_methods
from mcp_app.streams import (
    event_deliveries,
    event_ids,
    open_session,
    session_store,
    steps,
)
from mcp_app.streams import questions as open_questions
from mcp_app.streams import tasks as task_rows
from mcp_app.transports import client_messages, open_streams
from mcp_app.transports.http import (
    call_handler,
    handler,
    host_and_origin,
    logged_replies,
    replies,
    request_handler,
)
from mcp_app.transports.http_sse import sse_handler
from mcp_app.transports.stdio import channel, connection
from tests.conformance.disabling import AnyGuard, Guard, GuardEntry

GUARDS: Final[tuple[AnyGuard, ...]] = (
    Guard(
        site_requests.unauthenticated_refusal,
        "S-ELICIT-039 L-ELICIT-023 S-AUTH-010 S-AUTH-039 S-AUTH-041 S-AUTH-084 "
        "L-AUTH-026 L-AUTH-032 L-AUTH-085 L-AUTH-108 L-SEC-031",
    ),
    Guard(site_requests.insufficient_scope, "L-AUTH-033"),
    Guard(unwrap(connections.exchange_code), "S-AUTH-005 S-AUTH-046 L-AUTH-006"),
    Guard(connections._is_good_at, "L-AUTH-089 L-AUTH-090 L-AUTH-096", returns=True),
    Guard(principals.metadata_for, "S-AUTH-057 S-AUTH-058 L-AUTH-045"),
    Guard(
        token_cache.TokenEntry.refusal_at,
        "S-AUTH-017 S-AUTH-040 S-AUTH-079 S-AUTH-080 S-AUTH-082 S-AUTH-083 S-AUTH-085 "
        "L-AUTH-024 L-AUTH-025 L-AUTH-027 L-AUTH-028 L-AUTH-029 L-AUTH-065 L-AUTH-086 "
        "L-AUTH-087 L-SEC-029",
    ),
    Guard(issuer_tokens.IssuerWay._token_scope, "L-AUTH-041"),
    Guard(
        settings._public_url,
        "S-AUTH-019 S-AUTH-097 S-AUTH-098 L-AUTH-069 L-AUTH-070 L-AUTH-113",
    ),
    Guard(
        sites.is_allowed, "S-AUTH-108 L-AUTH-078 L-SEC-030 L-EVENTS-044", returns=True
    ),
    Guard(sites.Site.authority, "L-EVENTS-045"),
    Guard(callbacks.read_callback, "L-EVENTS-023"),
    Guard(fields.digest, "S-AUTH-094 L-AUTH-066", returns="argument"),
    Guard(consent.program_words, "S-AUTH-112 L-AUTH-082 L-SEC-010"),
    Guard(consent._answer_address, "L-AUTH-112"),
    Guard(consent._forbid_frames, "L-SEC-014"),
    Guard(connected_apps.allow_app, "L-SEC-009"),
    Guard(endpoints._requested_slug, "S-AUTH-081"),
    Guard(requests._check_challenge, "S-AUTH-023"),
    Guard(requests.check_before_resource, "L-AUTH-034"),
    Guard(clients._check_client, "S-AUTH-068 S-AUTH-071 L-AUTH-055 L-AUTH-058"),
    Guard(clients.document_url_problem, "S-AUTH-065 L-AUTH-053"),
    Guard(clients._abilities, "L-AUTH-016 L-AUTH-094"),
    Guard(
        clients.resource_metadata,
        "S-AUTH-054 S-AUTH-055 L-AUTH-009 L-AUTH-043 L-AUTH-044 L-AUTH-115",
    ),
    Guard(
        clients.server_metadata,
        "S-AUTH-012 S-AUTH-013 S-AUTH-051 S-AUTH-052 L-AUTH-010",
    ),
    Guard(requests.is_verifier_of, "S-AUTH-022 S-AUTH-093 L-AUTH-064", returns=True),
    Guard(redirects._check_kind, "S-AUTH-021 S-AUTH-099 L-AUTH-071"),
    Guard(
        redirects.is_same_redirect,
        "S-AUTH-020 S-AUTH-070 S-AUTH-103 S-AUTH-104 L-AUTH-042 L-AUTH-057 L-AUTH-074 "
        "L-AUTH-075 L-SEC-006 L-SEC-019 L-SEC-020 L-SEC-021",
        returns=True,
    ),
    Guard(texts.successor, "S-AUTH-096 L-AUTH-068", returns="argument"),
    Guard(decorators.definition_problems, "L-CACHE-004"),
    Guard(form_fields._check_offered, "S-ELICIT-012"),
    Guard(form_fields.field_schema, "S-ELICIT-001 S-ELICIT-002 L-ELICIT-002"),
    Guard(outputs._wrapped_schema, "L-BASE-069"),
    Guard(rules.uri_problem, "S-RES-030 L-RES-025"),
    Guard(content.ResourceContents.__post_init__, "S-PROMPT-018"),
    Guard(content.ResourceContents.to_wire, "S-RES-035 L-RES-032"),
    Guard(
        content._Media.__post_init__,
        "S-PROMPT-014 S-PROMPT-015 L-PROMPT-014 L-PROMPT-015",
    ),
    Guard(content._check_uri, "S-PROMPT-016"),
    Guard(content._embedded_members, "S-PROMPT-017 L-PROMPT-017"),
    Guard(envelope._is_request_id, "S-BASE-004"),
    Guard(envelope._is_request_id, "S-BASE-005 L-BASE-004 L-BASE-005", returns=True),
    Guard(envelope._read_notification, "L-HTTP-012"),
    Guard(envelope._read_request, "S-LIFE-036"),
    Guard(
        envelope.error_message,
        "S-BASE-009 S-BASE-013 S-BASE-014 L-BASE-014 L-BASE-016 L-BASE-017",
    ),
    Guard(envelope.notification_message, "S-BASE-018 L-BASE-022"),
    Guard(envelope.parse_message, "L-BASE-003", returns="argument"),
    Guard(envelope.parse_batch, "S-BASE-028"),
    Guard(envelope.result_message, "L-SUBS-018"),
    Guard(headers.Headers.get, "L-HEAD-030 L-HEAD-044 S-AUTH-036 L-AUTH-021"),
    Guard(headers._argument_at, "L-HEAD-028"),
    Guard(
        headers._is_accepted,
        "S-HTTP-016 S-HTTP-017 S-HTTP-076 L-HTTP-014 S-TASKS-012",
        returns=True,
    ),
    Guard(
        headers._mirrored_parameter,
        "L-HEAD-011 L-HEAD-012 L-HEAD-013 L-HEAD-015 L-HEAD-017 L-HEAD-018 L-HEAD-041 "
        "L-HEAD-042 L-HEAD-051",
    ),
    Guard(headers._stands_for, "L-HEAD-016 L-HEAD-026 L-HEAD-039", returns=True),
    Guard(headers.check_mirrored, "L-HEAD-027 L-HEAD-029 L-HEAD-058"),
    Guard(
        headers.check_routing,
        "L-HEAD-007 L-HEAD-008 L-HEAD-032 L-HEAD-034 L-HEAD-035 L-HEAD-037",
    ),
    Guard(
        headers.decode_value,
        "L-HEAD-021 L-HEAD-022 L-HEAD-025 L-HEAD-047",
        returns="argument",
    ),
    Guard(headers.mirrored_parameters, "L-HEAD-014"),
    Guard(jsonrpc._decode_body, "S-BASE-034 L-BASE-047", returns="argument"),
    Guard(framing.encode_line, "S-STDIO-006 L-STDIO-002", returns="argument"),
    Guard(
        results.meta_key_problem,
        "S-BASE-037 S-BASE-038 S-BASE-039 L-META-002 L-META-003 L-META-006",
    ),
    Guard(negotiation._stateless_revision, "L-DISC-001 L-HEAD-003"),
    Guard(negotiation.check_meta, "L-META-009 L-META-010"),
    Guard(negotiation.check_session_version, "S-LIFE-044"),
    Guard(negotiation.check_stateless, "L-HEAD-001 L-HEAD-002"),
    Guard(negotiation.check_version_header, "S-HTTP-068"),
    Guard(negotiation.is_stateless, "L-BASE-028"),
    Guard(negotiation.meta_of, "S-PROG-002 L-PROG-002"),
    Guard(negotiation.negotiate, "S-LIFE-011 S-LIFE-012"),
    GuardEntry(results.CAPABILITIES, "completions", "S-COMPL-001 L-COMPL-001"),
    GuardEntry(results.CAPABILITIES, "logging", "S-LOG-001 L-LOG-003"),
    GuardEntry(results.CAPABILITIES, "prompts", "S-PROMPT-001 L-PROMPT-001"),
    GuardEntry(results.CAPABILITIES, "resources", "S-RES-001 L-RES-001"),
    GuardEntry(results.CAPABILITIES, "tools", "S-TOOLS-001 L-TOOLS-001"),
    Guard(
        results.complete_result,
        "L-BASE-010 L-BASE-013 L-CACHE-001 L-TASKS-008 L-TASKS-028 L-TASKS-039 "
        "L-TASKS-045",
        returns="argument",
    ),
    Guard(results.input_required, "L-MRTR-022"),
    Guard(results.subscription_meta, "L-META-021"),
    Guard(revisions.Revision.stateless, "L-BASE-054 L-STDIO-005"),
    Guard(schema_graph.SchemaGraph._reference_target, "L-BASE-038 L-BASE-040"),
    Guard(
        schemas.Validator.is_valid, "S-TOOLS-046 L-TOOLS-048 L-TOOLS-055", returns=True
    ),
    Guard(
        schemas._build_validator,
        "S-BASE-049 S-BASE-052 L-BASE-032 L-BASE-035 L-BASE-070",
    ),
    Guard(schemas._check_dialect, "S-BASE-053 L-BASE-036"),
    Guard(schemas.check_schema, "S-BASE-054 S-TOOLS-011 L-BASE-037 L-TOOLS-018"),
    Guard(framing.endpoint_event, "S-SSE-003"),
    Guard(uri_templates._leaves_its_place, "S-RES-033 L-RES-030 L-RES-034"),
    Guard(finding.unknown_error, "L-RES-026 L-RES-028"),
    Guard(round_trip.CallClock.pause_timer, "L-HTTP-044"),
    Guard(context.CallCore._increases, "S-PROG-006 L-PROG-005", returns=True),
    Guard(context.CallCore._least_level, "L-LOG-005", returns=True),
    Guard(context.CallCore.question_key, "L-MRTR-011"),
    Guard(context.CallCore.complete_visit, "S-ELICIT-027 S-ELICIT-028"),
    Guard(
        conversation._check_tool_uses,
        "S-SAMPLING-015 S-SAMPLING-016 S-SAMPLING-017 L-SAMPLE-009 L-SAMPLE-010 "
        "L-SAMPLE-015 L-SAMPLE-019",
    ),
    Guard(conversation._wire_messages, "L-SAMPLE-011"),
    Guard(
        dispatch.result_message,
        "S-BASE-001 S-BASE-007 S-BASE-008 S-BASE-010 S-BASE-011 L-BASE-007 L-BASE-008 "
        "L-BASE-020",
    ),
    Guard(dispatch._check_caller_waits, "S-CANCEL-010 L-CANCEL-014"),
    Guard(dispatch._status_of_error, "L-HEAD-004 L-TASKS-072"),
    Guard(request.Request.allows_arguments, "L-HEAD-059 L-HEAD-060", returns=True),
    Guard(
        request.Request.sees,
        "S-TOOLS-047 S-COMPL-018 S-COMPL-019 L-CACHE-009 L-CACHE-017 L-CACHE-018 "
        "L-TOOLS-003 L-TOOLS-049 L-RES-004 L-PROMPT-003 L-COMPL-017 L-COMPL-018 "
        "L-CACHE-020 L-EVENTS-049",
        returns=True,
    ),
    GuardEntry(HANDLERS, "initialize", "S-BASE-002 S-LIFE-003"),
    GuardEntry(HANDLERS, "ping", "S-PING-001"),
    GuardEntry(HANDLERS, "server/discover", "L-BASE-001 L-DISC-003"),
    Guard(definitions.list_hint, "L-CACHE-013 L-CACHE-015"),
    Guard(definitions.check_arguments, "S-PROMPT-024 L-PROMPT-023"),
    Guard(definitions._resource_hint, "L-CACHE-006"),
    Guard(event_subscriptions._find_webhooks, "L-EVENTS-022"),
    Guard(webhooks.check_secret, "L-EVENTS-024", returns="argument"),
    Guard(webhooks.category_of, "L-EVENTS-033 L-EVENTS-046", returns="argument"),
    Guard(webhook_process.WebhookStore._ask_receiver, "L-EVENTS-047"),
    Guard(event_deliveries.claim_subscriptions, "L-EVENTS-030"),
    Guard(event_deliveries.Claim.note_answer, "L-EVENTS-039"),
    Guard(tools._add_structured, "L-TOOLS-054"),
    Guard(tools._shape_failure, "S-TOOLS-038 L-TOOLS-040"),
    Guard(plain_text.clean_text, "S-TOOLS-049 L-TOOLS-051", returns="argument"),
    Guard(log_secrets.names_secret, "S-LOG-013 L-LOG-016"),
    Guard(open_questions._erase_question, "S-SAMPLING-010 L-SAMPLE-014"),
    Guard(client_logging._without_traceback, "S-LOG-015", returns="argument"),
    Guard(coercion.string_member, "S-COMPL-016 L-COMPL-015"),
    Guard(questions.PreparedQuestion.input_request, "L-MRTR-012"),
    Guard(questions._check_url, "S-ELICIT-022 S-ELICIT-046 L-ELICIT-016"),
    Guard(questions._prepare_elicitation, "S-ELICIT-011 L-ELICIT-009"),
    Guard(
        questions._prepare_visit,
        "S-ELICIT-003 S-ELICIT-009 S-ELICIT-021 L-ELICIT-003 L-ELICIT-007 L-ELICIT-015",
    ),
    Guard(questions._parse_elicitation, "L-ELICIT-030"),
    Guard(questions._require_tools, "S-SAMPLING-011 L-SAMPLE-002"),
    Guard(questions._prepare_sample, "L-BASE-065"),
    Guard(
        questions.require_capability,
        "S-LIFE-024 S-ELICIT-007 L-ERR-011 L-BASE-024 L-META-013 L-META-014 "
        "L-META-015 L-MRTR-023 L-ELICIT-005 L-META-024",
    ),
    Guard(cursors.Sealer._decode_sealed, "L-MRTR-014 L-MRTR-033 L-MRTR-037"),
    Guard(cursors.Sealer._decrypt_sealed, "L-MRTR-015 L-MRTR-016"),
    Guard(
        conversation.state_binding,
        "L-BASE-027 L-MRTR-030 L-ELICIT-020 L-ELICIT-031 L-MRTR-035 L-MRTR-036 "
        "L-SEC-032",
    ),
    Guard(round_trip.RoundTrip._check_may_ask, "L-MRTR-007"),
    Guard(round_trip.RoundTrip._withdraw_open, "S-CANCEL-016"),
    Guard(round_trip.RoundTrip.ask_by_retry, "L-HTTP-018 L-MRTR-001 L-MRTR-024"),
    Guard(round_trip._is_unanswered, "S-CANCEL-002", returns=True),
    Guard(round_trip._url_elicitations, "S-ELICIT-031 S-ELICIT-032 S-ELICIT-033"),
    Guard(round_trip._url_elicitations, "S-ELICIT-030", returns="argument"),
    Guard(
        request.Request.takes_tasks,
        "S-TASKS-019 L-TASKS-003 L-TASKS-069 L-TASKS-073",
        returns=True,
    ),
    Guard(subscriptions.acknowledged_message, "L-SUBS-020 L-SUBS-021"),
    Guard(subscriptions.task_message, "L-TASKS-050"),
    Guard(subscriptions.cancelled_message, "L-CANCEL-001 L-CANCEL-003"),
    Guard(tasks.iso_time, "S-TASKS-033 S-TASKS-034"),
    Guard(tasks.TaskState.open_requests, "L-TASKS-024"),
    Guard(tasks.declares_tasks, "L-TASKS-070", returns=True),
    Guard(
        tasks.detailed_task,
        "L-TASKS-016 L-TASKS-022 L-TASKS-023 L-TASKS-025 L-TASKS-026 L-TASKS-027 "
        "L-TASKS-061 L-TASKS-062 L-TASKS-063",
    ),
    Guard(tasks.task_capabilities, "S-TASKS-001 L-DISC-006 L-TASKS-074 L-TASKS-075"),
    Guard(task_calls._lifetime_ms, "S-TASKS-036"),
    Guard(task_calls._answer_with_task, "S-TASKS-039 L-TASKS-007"),
    Guard(task_calls.mode_of, "S-TASKS-008"),
    Guard(task_states.parked_state, "L-TASKS-031 L-TASKS-032"),
    Guard(
        task_calls.requires_extension,
        "L-DISC-007 L-TASKS-004 L-TASKS-048 L-TASKS-056",
    ),
    Guard(waiting._ask_client, "S-TASKS-030 S-TASKS-044 S-TASKS-045"),
    Guard(
        task_methods._find_task,
        "S-TASKS-046 S-TASKS-059 S-TASKS-061 L-TASKS-053 L-TASKS-055",
    ),
    Guard(task_methods.cancel_task, "S-CANCEL-004 S-TASKS-054 L-TASKS-040 L-TASKS-041"),
    Guard(task_methods.list_tasks, "S-TASKS-052 S-TASKS-053 S-TASKS-060"),
    Guard(
        task_calls.may_read,
        "S-TASKS-067 S-TASKS-071 S-TASKS-072 L-TASKS-067",
        returns=True,
    ),
    Guard(task_methods.update_task, "L-TASKS-034"),
    Guard(waiting.wait_for_change, "S-TASKS-042"),
    Guard(task_methods.wait_for_result, "S-TASKS-041 S-TASKS-043 S-TASKS-048"),
    Guard(
        task_rows.store_task,
        "S-TASKS-021 S-TASKS-022 S-TASKS-023 S-TASKS-024 S-TASKS-069 L-TASKS-017 "
        "L-TASKS-066",
    ),
    Guard(TaskQuerySet._move_once, "S-TASKS-025 S-TASKS-026 S-TASKS-057", returns=True),
    Guard(TaskQuerySet.cancel, "S-TASKS-056"),
    Guard(event_ids.new_public_id, "S-HTTP-048", returns="argument"),
    Guard(open_session.OpenSession.next_question_id, "S-BASE-006"),
    Guard(
        session_store.SessionStore._is_usable_by,
        "S-ELICIT-035 S-ELICIT-036 S-ELICIT-045",
        returns=True,
    ),
    Guard(session_store.SessionStore.delete, "S-HTTP-062"),
    Guard(steps._claim_step, "L-MRTR-021", returns=True),
    Guard(rates.Rates.wait_for_tool, "S-TOOLS-048 L-TOOLS-050 L-MRTR-040"),
    Guard(
        rates.Rates.check_requests, "S-COMPL-014 S-COMPL-017 L-COMPL-013 L-COMPL-016"
    ),
    Guard(client_messages.take_message, "S-HTTP-014"),
    Guard(channel.Listening.cancel, "L-SUBS-019"),
    Guard(
        channel.RunningCall._may_send_more,
        "S-PROG-009 S-PROG-013 L-PROG-008 L-PROG-012",
        returns=True,
    ),
    Guard(channel.RunningCall.cancel, "L-STDIO-012"),
    Guard(connection._wants_no_answer, "L-BASE-021"),
    Guard(
        host_and_origin._origin_allowed,
        "S-HTTP-003 S-HTTP-004 L-HTTP-003 L-HTTP-004",
        returns=True,
    ),
    Guard(
        request_handler.HttpRequestHandler._send_accepted,
        "S-BASE-020 S-HTTP-012 S-HTTP-013 L-HTTP-011",
    ),
    Guard(request_handler.HttpRequestHandler._not_allowed, "L-HTTP-038 L-HTTP-041"),
    Guard(handler.EndpointHandler._find_session, "S-LIFE-001"),
    Guard(handler.EndpointHandler.get, "S-HTTP-001 S-HTTP-035"),
    Guard(handler.EndpointHandler.post, "L-HTTP-001"),
    Guard(handler._refuse_answer, "L-ERR-009 L-BASE-048"),
    Guard(sse_handler.MessagesHandler.post, "S-SSE-004"),
    Guard(sse_handler.StreamHandler.get, "S-SSE-002"),
    Guard(logged_replies.LoggedReply._write_beginning, "L-HTTP-046"),
    Guard(replies.Reply.gone, "L-HTTP-025 L-CANCEL-005"),
    Guard(open_streams.ListenStream.open_with_message, "L-SUBS-005"),
    Guard(
        open_streams.ListenStream.watched, "L-SUBS-001 L-SUBS-017", returns="argument"
    ),
    Guard(open_streams.OpenStream.__exit__, "L-EVENTS-021"),
    Guard(open_streams.PushStream.write_heartbeat, "L-EVENTS-015"),
    Guard(call_handler.CallHandler._push_events, "L-EVENTS-020"),
    Guard(open_streams.OpenStream._begun_with, "L-SUBS-006", returns=True),
    Guard(
        open_streams.StandingStream._is_newest, "S-HTTP-044 S-HTTP-045", returns=True
    ),
)
