"""The options of decorators, turned into definitions and checked at import."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar

from mcp_app.catalog.findings import check_options
from mcp_app.catalog.registered_function import (
    Declaration,
    DeclaredPrompt,
    DeclaredResource,
    DeclaredTemplate,
    DeclaredTool,
    RegisteredFunction,
)
from mcp_app.interface import rules
from mcp_app.interface.definitions import (
    APPROVERS,
    Approval,
    Approver,
    Definition,
    PromptArgument,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
    ToolHints,
)
from mcp_app.interface.errors import RegistrationError
from mcp_app.interface.rules import AccessRequirements, read_requirements
from mcp_app.protocol import jsonrpc, schemas
from mcp_app.protocol.apps import SCHEME
from mcp_app.protocol.content import Annotations, Icon
from mcp_app.protocol.headers import mirrored_parameters
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.results import meta_key_problem
from mcp_app.protocol.tasks import FORBIDDEN, TASK_SUPPORT, TaskSupport
from mcp_app.protocol.uri_templates import UriTemplate

AnyDefinition = TypeVar("AnyDefinition", bound=Definition)
RowEvent: TypeAlias = Literal["created", "changed", "deleted"]
"""What happens to a row."""


class RunOptions(TypedDict, total=False):
    """How a function is run.

    If `atomic` is None, the database's ATOMIC_REQUESTS counts.  `database` runs an
    async function in a thread of its own, so that the ORM's async methods use
    connections of this call alone.
    """

    atomic: bool | None
    database: bool


class DefinitionOptions(RunOptions, total=False):
    """What all decorators of definitions take; `timeout` is in seconds.

    A user needs the `permission`, and must be in one of the `groups`.  The `rule` must
    agree, too: it is a function `(AccessRequest) -> bool`, or the key of one.
    """

    name: str | None
    title: str
    description: str | None
    icons: Sequence[Icon]
    meta: Mapping[str, object]
    permission: str
    groups: Iterable[str]
    rule: str | Callable[..., Any]
    timeout: float | None
    tags: Iterable[str]
    position: int


class ToolOptions(DefinitionOptions, total=False):
    """The hints are the protocol's; schemas replace those of the signature.

    One person may call the tool `calls_per_minute` times; None means the site's rate.

    `task` lets it run in the background: "optional" if the client can, "required"
    always.  `rerun` says whether it runs again if its worker dies; None: if it is
    read-only or idempotent.  With `ask_first` a call becomes a task at `ctx.as_task()`.

    With `approval` a person must agree before it runs: "self", the calling user on this
    site, or "other", another person.  An `Approval` has further options.

    `app` is the URI of the page that hosts show in place of its answer.  With
    `app_only`, only that page calls the tool: hosts do not show it to the model.
    """

    read_only: bool | None
    destructive: bool | None
    idempotent: bool | None
    open_world: bool | None
    input_schema: JsonObject | None
    output_schema: JsonObject | None
    calls_per_minute: int | None
    task: TaskSupport
    ask_first: bool
    rerun: bool | None
    approval: Approver | Approval | None
    app: str
    app_only: bool


class ResourceOptions(DefinitionOptions, total=False):
    """`size` is in bytes; `ttl_ms` and `public` are hints for caches.

    The resource shows instances of `model`: clients that watch it are told of each
    save and deletion.  The user must have the `object_permission` for the instance
    that is read (`has_perm(permission, instance)`).
    """

    model: type[Any] | None
    object_permission: str
    mime_type: str
    size: int | None
    annotations: Annotations | None
    ttl_ms: int
    public: bool


class ModelOptions(TypedDict, total=False):
    """What `open_model` takes beside fields and rows.

    Callers of a query need the `permission`, by default Django's view permission.  They
    also need those of the `permissions` whose fields the query names.  `text` is the
    field that stands for a row where others refer to it, by default the first text of
    the fields, else the key.  `scope` tells staff whose rows these are, by default by
    the first line of the docstring of `rows`.

    The `events` of rows are written into the outbox, so that staff can make event types
    of them.  An event also notes which of the columns in `watch` changed.
    """

    permission: str | None
    permissions: Mapping[str, str] | None
    title: str
    text: str | None
    scope: str
    events: Sequence[RowEvent]
    watch: Sequence[str]


class RuleOptions(TypedDict, total=False):
    """With `arguments`, each call asks the rule again, with the call's arguments."""

    arguments: bool


_RUN = frozenset(RunOptions.__annotations__)
_HINTS = frozenset(ToolHints.__dataclass_fields__)
_SCHEMAS = ("input_schema", "output_schema")

_MODEL = frozenset({"model", "object_permission"})
_DEMANDS = frozenset({"permission", "groups", "rule"})
_READABLE = (ResourceDefinition, ResourceTemplateDefinition)


def declared_tool(function: RegisteredFunction, options: ToolOptions) -> DeclaredTool:
    """Make the tool of a function, with its schemas and its converter."""
    check_options(function.qualified_name, "tool", ToolOptions, options)
    values: dict[str, Any] = dict(options)
    hints = {name: values[name] for name in _HINTS & values.keys()}
    # Raises for a bad return type: it converts results even if a schema is given.
    function.tool_runnable()
    for name in _SCHEMAS:
        if values.get(name) is None:
            values[name] = getattr(function.signature, name)
        else:
            _check_object_schema(function, name.partition("_")[0], values[name])
    if problems := function.schema_problems(values["input_schema"]):
        raise RegistrationError(f"{function.qualified_name}: {' '.join(problems)}")
    members = _definition_members(function, values, _HINTS)
    if (by := options.get("approval")) in APPROVERS:
        members["approval"] = Approval(by=by)
    definition = ToolDefinition(**members, hints=ToolHints(**hints))
    return _checked_declaration(
        definition, function, _name_problem(definition.name, "tool")
    )


def declared_prompt(
    function: RegisteredFunction, options: DefinitionOptions
) -> DeclaredPrompt:
    """Make the prompt of a function: its parameters are the arguments."""
    check_options(function.qualified_name, "prompt", DefinitionOptions, options)
    definition = PromptDefinition(
        **_definition_members(function, dict(options)),
        arguments=tuple(_prompt_arguments(function)),
    )
    return _checked_declaration(
        definition, function, _name_problem(definition.name, "prompt")
    )


def declared_resource(
    function: RegisteredFunction, uri: str, options: ResourceOptions
) -> DeclaredResource:
    """Make the resource of a function that needs no arguments."""
    check_options(function.qualified_name, "resource", ResourceOptions, options)
    members = _definition_members(function, dict(options), _MODEL)
    definition = ResourceDefinition(uri=uri, **members)
    _check_variables(function, uri, ())
    return _checked_declaration(definition, function, rules.uri_problem(uri))


def declared_template(
    function: RegisteredFunction,
    uri_template: str,
    options: ResourceOptions,
    instances: tuple[str, ...] = (),
) -> DeclaredTemplate:
    """Make the template of a function: its variables are the parameters.

    `instances` are the keys of rules about the instance that is read.
    """
    check_options(function.qualified_name, "resource", ResourceOptions, options)
    try:
        template = UriTemplate.parse(uri_template)
    except ValueError as error:
        raise RegistrationError(f"{function.qualified_name}: {error}") from None
    values = dict(options)
    if values.pop("size", None) is not None:
        raise RegistrationError(
            f"{function.qualified_name}: the resources of the template {uri_template}"
            " do not all have the same size."
        )
    members = _definition_members(function, values, _MODEL)
    instance_demands = AccessRequirements(rules=instances)
    members["demands"] = members["demands"].combined_with(instance_demands)
    definition = ResourceTemplateDefinition(uri_template=uri_template, **members)
    _check_variables(function, uri_template, template.variables)
    example = template.expand(dict.fromkeys(template.variables, "0"))
    return _checked_declaration(definition, function, rules.uri_problem(example))


def _definition_members(
    function: RegisteredFunction,
    options: Mapping[str, Any],
    without: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    left_out = _RUN | _DEMANDS | without
    members = {name: each for name, each in options.items() if name not in left_out}
    description = members.get("description")
    return {
        **members,
        "demands": read_requirements(options),
        "name": members.get("name") or function.inspected.name,
        "description": function.description if description is None else description,
        "icons": tuple(members.get("icons", ())),
        "tags": frozenset(members.get("tags", ())),
    }


def _name_problem(name: str, decorator: str) -> str | None:
    if name == "<lambda>":
        return f'A lambda has no name: write mcp.{decorator}("name")(lambda …).'
    return rules.name_problem(name)


def _checked_declaration(
    definition: AnyDefinition, function: RegisteredFunction, problem: str | None
) -> Declaration[AnyDefinition]:
    problems = [problem] if problem else list(definition_problems(definition))
    if problems:
        raise RegistrationError(f"{function.qualified_name}: {' '.join(problems)}")
    return Declaration(definition, function)


def definition_problems(definition: Definition) -> Iterator[str]:
    """Yield what is wrong with a definition, except with its name and its URI."""
    permissions = map(rules.permission_problem, definition.demands.permissions)
    tags = map(rules.tag_problem, sorted(definition.tags))
    yield from filter(
        None, [*permissions, *tags, *map(meta_key_problem, definition.meta)]
    )
    if definition.timeout is not None and not 0 < definition.timeout < math.inf:
        yield f"The timeout is {definition.timeout}; it must be more than 0 seconds."
    if isinstance(definition, ToolDefinition):
        yield from _tool_problems(definition)
    if isinstance(definition, _READABLE) and definition.ttl_ms < 0:
        # 2026-07-28, CacheableResult: clients refuse a negative one.
        yield f"The ttl_ms is {definition.ttl_ms}; it must be 0 or more."
    texts = {"title": definition.title, "description": definition.description}
    try:
        jsonrpc.write({**texts, "_meta": definition.meta})
    except jsonrpc.UnserializableValue as error:
        yield f"The definition cannot be written as JSON: {error}"


def _tool_problems(definition: ToolDefinition) -> Iterator[str]:
    rate = definition.calls_per_minute
    if rate is not None and rate < 1:
        yield f"calls_per_minute is {rate}: it must be at least 1."
    if definition.task not in TASK_SUPPORT:
        names = ", ".join(map(repr, TASK_SUPPORT))
        yield f"task is {definition.task!r}: it must be one of {names}."
    elif definition.task == FORBIDDEN and (definition.ask_first or definition.rerun):
        yield 'ask_first and rerun are for tasks: add task="optional".'
    if definition.app and not definition.app.startswith(SCHEME):
        yield f"app is {definition.app!r}: it must begin with {SCHEME}."
    if definition.approval is not None:
        yield from _approval_problems(definition.approval)


def _approval_problems(approval: Approval) -> Iterator[str]:
    if approval.by not in APPROVERS:
        yield f"by is {approval.by!r}: it must be one of {APPROVERS}."
    for function in filter(None, (approval.when, approval.describe)):
        if inspect.iscoroutinefunction(function):
            yield f"{function!r} is async: it must be a plain function."
        try:
            inspect.signature(function).bind({}, None)
        except (TypeError, ValueError) as error:
            yield f"{function!r} must take the arguments and the user: {error}."
    yield from filter(None, [rules.permission_problem(approval.permission)])


def _check_object_schema(
    function: RegisteredFunction, which: str, schema: JsonObject
) -> None:
    if schema.get("type") != "object":
        raise RegistrationError(
            f"{function.qualified_name}: the type of the {which} schema must be "
            f'"object", not {schema.get("type")!r}.'
        )
    try:
        schemas.check_schema(schema)
        mirrored_parameters(schema)
    except ValueError as error:
        raise RegistrationError(
            f"{function.qualified_name}: the {which} schema is not allowed. {error}"
        ) from None


def _prompt_arguments(function: RegisteredFunction) -> Iterator[PromptArgument]:
    schema = function.signature.input_schema
    required = schema.get("required", ())
    for name, member in schema["properties"].items():
        problem = rules.argument_problem(name)
        if not problem and not _from_text(member, schema):
            problem = (
                f"The argument {name} of a prompt arrives as a text, but its type"
                f" cannot be read from a text. Write {name}: str."
            )
        if problem:
            raise RegistrationError(f"{function.qualified_name}: {problem}")
        yield PromptArgument(
            name=name,
            title=member.get("title", ""),
            description=member.get("description", ""),
            required=name in required,
        )


def _from_text(member: JsonObject, schema: JsonObject) -> bool:
    """Whether a value of this schema can be read from a string."""
    if "$ref" in member:
        name = member["$ref"].rpartition("/")[2]
        return _from_text(schema["$defs"][name], schema)
    if "anyOf" in member:
        return any(_from_text(each, schema) for each in member["anyOf"])
    # Without a type any value fits, also a text.
    kinds = member.get("type")
    several = kinds if isinstance(kinds, list) else [kinds]
    return bool({*several} - {"array", "object", "null"})


def _check_variables(
    function: RegisteredFunction, uri: str, variables: Sequence[str]
) -> None:
    """Check that each variable has a parameter, and each required one a variable."""
    schema = function.signature.input_schema
    unknown = [name for name in variables if name not in schema["properties"]]
    missing = [name for name in schema.get("required", ()) if name not in variables]
    if unknown:
        raise RegistrationError(
            f"{function.qualified_name} has no parameter for the variables "
            f"{', '.join(unknown)} of {uri}. Give it parameters of these names."
        )
    if missing:
        wanted = " and ".join(f"{{{name}}}" for name in missing)
        raise RegistrationError(
            f"{function.qualified_name} needs {', '.join(missing)}, which {uri} does "
            f"not have as variables. Add {wanted} to the URI, or give defaults."
        )
