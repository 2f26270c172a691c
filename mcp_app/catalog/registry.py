"""The registry of what code declares, and its decorators.

User code imports `mcp`, the registry that is served, from `mcp_app`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, Unpack, overload

from asgiref.sync import sync_to_async

from mcp_app.catalog.apps import AppOptions, app_renderer, read_app_options
from mcp_app.catalog.callables import MISSING, build_rule, object_rule
from mcp_app.catalog.decorators import (
    DefinitionOptions,
    ModelOptions,
    ResourceOptions,
    RuleOptions,
    RunOptions,
    ToolOptions,
    declared_prompt,
    declared_resource,
    declared_template,
    declared_tool,
)
from mcp_app.catalog.event_types import (
    DeclaredEvent,
    EventOptions,
    audience_keys,
    check_event_id,
    declared_event,
)
from mcp_app.catalog.findings import (
    Origin,
    Problems,
    calling_module,
    check_options,
    check_text,
    origin_of,
    qualified_name,
    recording,
    recording_call,
)
from mcp_app.catalog.registered_function import (
    Declaration,
    DeclaredPrompt,
    DeclaredResource,
    DeclaredTemplate,
    DeclaredTool,
    ReadyFunction,
    RegisteredFunction,
)
from mcp_app.catalog.skill_folders import SkillOptions, read_declared_skills
from mcp_app.catalog.toolset_options import (
    AdminToolOptions,
    ModelToolOptions,
    RestToolOptions,
    Toolset,
    ToolsetOptions,
)
from mcp_app.interface.errors import RegistrationError
from mcp_app.interface.principal import Judge, Rule

if TYPE_CHECKING:
    from django.db.models import Model

    from mcp_app.catalog.bindings import Binding
    from mcp_app.catalog.open_models import OpenModel, Rows

__all__ = ["RegisteredFunction", "RegistrationError", "Registry", "mcp"]

Function = TypeVar("Function", bound=Callable[..., object])
Ruling = TypeVar("Ruling", bound=Judge)
Key = TypeVar("Key")
AnyClass = TypeVar("AnyClass", bound=type)
Entry = TypeVar(
    "Entry", bound=RegisteredFunction | Declaration[Any] | DeclaredEvent | Rule
)

_IDENTITIES = {
    "tool": "name",
    "prompt": "name",
    "resource": "URI",
    "resource template": "URI",
    "completer": "argument",
    "function": "key",
    "rule": "key",
    "event": "name",
}
"""What distinguishes declarations of a kind."""


class Registry:
    """Decorators that record a function and return it unchanged.

    Each raises `RegistrationError` at once for what could not be served; while a site's
    modules are imported at start, `problems` gets the sentence instead.  If a module
    is imported again, it replaces what it declared before.
    """

    make_toolsets: ClassVar[Callable[[Registry], None]] = staticmethod(lambda _: None)
    """Makes the tools of toolsets; a higher module sets this at start."""
    cause_of_call: ClassVar[Callable[[], str]] = staticmethod(lambda: "")
    """Returns who made the current call, or ""; a higher module sets this at start."""

    def __init__(self) -> None:
        self.declared_tools: dict[str, DeclaredTool] = {}
        self.toolsets: dict[tuple[str, object], Toolset] = {}
        self.ready_toolsets: dict[tuple[str, object], Toolset] = {}
        """The toolsets whose tools were made, or could not be."""
        self.resources: dict[str, DeclaredResource] = {}
        self.templates: dict[str, DeclaredTemplate] = {}
        self.prompts: dict[str, DeclaredPrompt] = {}
        self.events: dict[str, DeclaredEvent] = {}
        self.functions: dict[str, RegisteredFunction] = {}
        self.completers: dict[tuple[str, str], RegisteredFunction] = {}
        self.bindings: dict[str, Binding] = {}
        self.rules: dict[str, Rule] = {}
        self.open_models: dict[str, OpenModel] = {}
        self.wanted_models: dict[str, None] = {}
        """The labels of open models, and of models that code failed to open."""
        self.origins: dict[tuple[str, object], Origin] = {}
        """Where code declares each definition, by its kind and its key."""
        self.problems: Problems = {}
        """A sentence for each declaration that is not served."""
        self.toolset_problems: Problems = {}
        """A sentence for each toolset that cannot be made."""
        self.toolset_remarks: Problems = {}
        """What a developer should know of a toolset that is made."""

    @property
    def tools(self) -> dict[str, DeclaredTool]:
        """All tools; those of toolsets are made when they are first asked for."""
        if len(self.ready_toolsets) < len(self.toolsets):
            type(self).make_toolsets(self)
        return self.declared_tools

    def clear(self) -> None:
        """Forget everything."""
        for declared in vars(self).values():
            declared.clear()

    @overload
    def tool(self, function: Function, /) -> Function: ...

    @overload
    def tool(
        self, name: str | None = None, /, **options: Unpack[ToolOptions]
    ) -> Callable[[Function], Function]: ...

    @recording
    def tool(
        self, function_or_name: Any = None, /, **options: Unpack[ToolOptions]
    ) -> Any:
        """Declare a tool: `@mcp.tool`, or with a name and options."""

        def declare_tool(function: Function) -> Function:
            # An output schema in the options describes an object.
            assumed = dict if options.get("output_schema") else MISSING
            registered = _build_function(function, options, returns=assumed)
            self._resolve_rule(options)
            tool = declared_tool(registered, options)
            self._add_entry(self.declared_tools, tool.definition.name, tool, "tool")
            return function

        return _decorator(declare_tool, function_or_name, options)

    @overload
    def prompt(self, function: Function, /) -> Function: ...

    @overload
    def prompt(
        self, name: str | None = None, /, **options: Unpack[DefinitionOptions]
    ) -> Callable[[Function], Function]: ...

    @recording
    def prompt(
        self, function_or_name: Any = None, /, **options: Unpack[DefinitionOptions]
    ) -> Any:
        """Declare a prompt: `@mcp.prompt`, or with a name and options."""

        def declare_prompt(function: Function) -> Function:
            self._resolve_rule(options)
            prompt = declared_prompt(_build_function(function, options), options)
            self._add_entry(self.prompts, prompt.definition.name, prompt, "prompt")
            return function

        return _decorator(declare_prompt, function_or_name, options)

    @recording
    def resource(
        self, uri: str, /, **options: Unpack[ResourceOptions]
    ) -> Callable[[Function], Function]:
        """Declare a resource, or with `{variables}` in its URI a template."""
        check_text(uri, "resource", "URI")

        def declare_resource(function: Function) -> Function:
            registered = _build_function(function, options)
            binding: Binding | None = None
            if (model := options.get("model")) is not None:
                # Models can be imported only where the app registry is ready.
                from mcp_app.catalog.bindings import bind_model  # noqa: PLC0415

                binding = bind_model(registered.qualified_name, uri, model)
            self._resolve_rule(options)
            permission = options.get("object_permission")
            rules = (
                [object_rule(registered.qualified_name, binding, permission)]
                if permission
                else []
            )
            if "{" in uri:
                keys = tuple(rule.key for rule in rules)
                template = declared_template(registered, uri, options, keys)
                self._add_entry(self.templates, uri, template, "resource template")
            else:
                resource = declared_resource(registered, uri, options)
                self._add_entry(self.resources, uri, resource, "resource")
            for rule in rules:
                self._add_entry(self.rules, rule.key, rule, "rule")
            if binding is not None:
                self.bindings[uri] = binding
            return function

        return declare_resource

    @recording_call
    def app(self, uri: str, /, **options: Unpack[AppOptions]) -> None:
        """Declare a page that hosts show in the place of a tool's answer (MCP Apps).

        It is a resource; a tool names it with `app="ui://…"`.
        """
        template, resource_options = read_app_options(uri, options)
        if isinstance(template, str):
            template = app_renderer(template, uri, calling_module())
        self.resource(uri, **resource_options)(template)

    @recording
    def complete(
        self, reference: str, argument: str, /, **options: Unpack[RunOptions]
    ) -> Callable[[Function], Function]:
        """Complete an argument of a prompt (by its name) or of a template.

        The prompt or template may be declared later, or in the admin.
        """

        check_text(reference, "complete", "prompt or a URI template")
        check_text(argument, "complete", "name of an argument")

        def declare_completer(function: Function) -> Function:
            key = f"{reference} {argument}"
            registered = _build_function(function, options, key=key)
            check_options(registered.qualified_name, "complete", RunOptions, options)
            registered.completion_runnable()
            self._add_entry(
                self.completers, (reference, argument), registered, "completer"
            )
            return function

        return declare_completer

    @recording
    def function(
        self, key: str, /, **options: Unpack[RunOptions]
    ) -> Callable[[Function], Function]:
        """Register a function for rows of the kind `function`; nothing lists it."""
        check_text(key, "function", "key")

        def declare_function(function: Function) -> Function:
            registered = _build_function(function, options, key=key)
            check_options(registered.qualified_name, "function", RunOptions, options)
            self._add_entry(self.functions, key, registered, "function")
            return function

        return declare_function

    @recording
    def rule(
        self, key: str, /, **options: Unpack[RuleOptions]
    ) -> Callable[[Ruling], Ruling]:
        """Register a function that says who may: `(request: AccessRequest) -> bool`.

        Definitions, servers and rows name it by its key.  With `arguments` it is asked
        at each call, too, with the arguments.
        """
        check_text(key, "rule", "key")

        def declare_rule(function: Ruling) -> Ruling:
            check_options(qualified_name(function), "rule", RuleOptions, options)
            rule = build_rule(function, key, **options)
            self._add_entry(self.rules, rule.key, rule, "rule")
            return function

        return declare_rule

    @recording
    def event(
        self, name: str, /, **options: Unpack[EventOptions]
    ) -> Callable[[AnyClass], AnyClass]:
        """Declare an event type: a dataclass, a TypedDict or a pydantic model.

        Its fields are what subscribers are told.
        """
        check_text(name, "event", "name")

        def declare_event(cls: AnyClass) -> AnyClass:
            self._resolve_rule(options)
            declared = declared_event(cls, name, options)
            self._add_entry(self.events, name, declared, "event")
            return cls

        return declare_event

    def emit(
        self,
        event: object,
        *,
        name: str = "",
        to: Iterable[object] | None = None,
        id: str = "",
    ) -> str:
        """Tell subscribers that something happened; return the event's id.

        It is a row of the caller's transaction: what is rolled back is never told.
        `event` is an instance of a declared class; `name` says which event that is if
        it is a dict, or if several have the class.  With `to`, users or their primary
        keys, nobody else is told.  `id` is the source's own.  Raises ValueError for
        what is no such event or larger than `LIMITS["event_size"]`; inserts a row.
        """
        # Models can be imported only where the app registry is ready.
        from mcp_app.invalidation.events import record_occurrence  # noqa: PLC0415

        declared = self._declared_event(event, name)
        audience = None if to is None else audience_keys(to)
        check_event_id(id)
        return record_occurrence(
            declared.definition.topic,
            declared.dump(event),
            event_id=id,
            audience=audience,
            cause=type(self).cause_of_call(),
        )

    async def aemit(
        self,
        event: object,
        *,
        name: str = "",
        to: Iterable[object] | None = None,
        id: str = "",
    ) -> str:
        """`emit` for async code."""
        return await sync_to_async(self.emit)(event, name=name, to=to, id=id)

    def _declared_event(self, event: object, name: str) -> DeclaredEvent:
        if name:
            if name in self.events:
                return self.events[name]
            raise ValueError(f"There is no event {name!r}: {', '.join(self.events)}.")
        of_class = [each for each in self.events.values() if each.cls is type(event)]
        if len(of_class) != 1:
            which = ", ".join(each.definition.name for each in of_class) or "none"
            raise ValueError(
                f"Events of the class {type(event).__qualname__}: {which}. Say which"
                ' event this is, as in emit(…, name="order.paid").'
            )
        return of_class[0]

    @recording_call
    def skills(self, folder: str, /, **options: Unpack[SkillOptions]) -> None:
        """Declare a skill for each folder in a folder that has a SKILL.md (SEP-2640).

        `folder` is beside the module that calls it: `skills/refunds/SKILL.md`.  Those
        that cannot be served are told together, after all others are declared.
        """
        check_options("skills", "skills", SkillOptions, options)
        self._resolve_rule(options)
        problems: list[str] = []
        for each in read_declared_skills(folder, options, problems):
            self._add_entry(self.resources, each.definition.uri, each, "resource")
        if problems:
            raise RegistrationError(" ".join(problems))

    @recording_call
    def open_model(
        self,
        model: type[Model],
        /,
        *,
        fields: Sequence[str] = (),
        rows: Rows | None = None,
        filters: Sequence[str] | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        """Open a model for rows of the kind `query`.

        `fields` may be shown, `filters` (default: `fields`) may be asked by; `rows` is
        "all", or says which rows a caller sees.
        """
        # Models can be imported only where the app registry is ready.
        from mcp_app.catalog import open_models  # noqa: PLC0415

        # Noted first: if it cannot be opened, relations to it are no further problem.
        self.wanted_models[getattr(getattr(model, "_meta", None), "label", "")] = None
        opened = open_models.open_model(
            model, fields=fields, rows=rows, filters=filters, **options
        )
        origin = origin_of(getattr(model, "__module__", ""))
        key = ("open model", opened.label)
        first = self.origins.get(key)
        if first is not None and first.place != origin.place:
            raise RegistrationError(
                f"{opened.label} is already opened at {first.place}. Open it once, with"
                " all its fields."
            )
        self.open_models[opened.label] = opened
        self.origins[key] = origin

    @recording_call
    def model_tools(
        self, model: type[Model], /, **options: Unpack[ModelToolOptions]
    ) -> None:
        """Make tools that list, get and count the rows of an opened model.

        Called `order_list`, `order_get` and `order_count`, they show each caller what
        `open_model` says.
        """
        self._note_toolset("models", "model_tools", model, ModelToolOptions, options)

    @recording_call
    def admin_tools(self, **options: Unpack[AdminToolOptions]) -> None:
        """Make tools that read the models of the admin, by its own pages.

        With `change=[Order]` there are tools that add, change and delete orders, and
        run actions on them, as far as the pages let whoever calls.
        """
        self._note_toolset("admin", "admin_tools", None, AdminToolOptions, options)

    @recording_call
    def rest(self, view: Any, /, **options: Unpack[RestToolOptions]) -> None:
        """Make tools of a view of Django REST framework, by the extra `drf`.

        Each action of a viewset is one: `orders_list`, `orders_retrieve`.  The view
        answers, behind the site's middleware, with the caller as its user.
        """
        self._note_toolset("rest", "rest", view, RestToolOptions, options)

    @recording_call
    def openapi(self, document: Any, /, **options: Unpack[ToolsetOptions]) -> None:
        """Make tools of an OpenAPI document of this site, or of what returns it.

        The views of the site answer, as those of `rest` do.
        """
        self._note_toolset("openapi", "openapi", document, ToolsetOptions, options)

    def _note_toolset(
        self, maker: str, method: str, subject: Any, known_options: type, options: Any
    ) -> None:
        check_options(method, method, known_options, options)
        self._resolve_rule(options)
        call = f"mcp.{method}({_subject_name(subject)})"
        key = maker, options.get("name") or call
        # Of a toolset only the line counts, so no module is looked for.
        origin = origin_of("")
        first = self.toolsets.get(key)
        if first is not None and first.origin.place != origin.place:
            raise RegistrationError(
                f"{call} stands at {first.origin.place} already. Write it once, or give"
                ' one of the two another name, as in name="my".'
            )
        self.toolsets[key] = Toolset(maker, call, subject, options, origin)
        self.ready_toolsets.pop(key, None)

    def add_toolset(self, toolset: Toolset, tools: Sequence[DeclaredTool]) -> None:
        """Add the tools of a toolset; all of them, or raise `RegistrationError`."""
        entries = {each.definition.name: each for each in tools}
        for name, tool in entries.items():
            first = self.declared_tools.get(name)
            if first is not None and _declarer_name(first) != _declarer_name(tool):
                raise RegistrationError(
                    f"the tool {name!r} is already declared by {_declarer_name(first)}"
                    f" ({self.origins['tool', name].place}). Give the toolset another"
                    ' name, as in name="my".'
                )
        self.declared_tools |= entries
        self.origins |= {("tool", name): toolset.origin for name in entries}

    def _resolve_rule(self, options: Any) -> None:
        """Replace a function in the option `rule` by its key; register it if needed."""
        option_rule = options.get("rule")
        if option_rule is None or isinstance(option_rule, str):
            return
        keys = (each.key for each in self.rules.values() if each.judge is option_rule)
        key = next(keys, None)
        if key is None and callable(option_rule):
            rule = build_rule(option_rule)
            key = rule.key
            self._add_entry(self.rules, key, rule, "rule")
        if key is not None:
            options["rule"] = key

    def _add_entry(
        self, entries: dict[Key, Entry], key: Key, entry: Entry, what: str
    ) -> None:
        """Add a new entry, or replace one that its module declares again."""
        first, origin_key = entries.get(key), (what, key)
        origin = origin_of(getattr(_user_function(entry), "__module__", ""))
        if first is not None and self._is_another(first, entry, origin, origin_key):
            raise RegistrationError(
                f"{_declarer_name(entry)}: the {what} {key!r} is already declared by"
                f" {_declarer_name(first)} ({self.origins[origin_key].place}). Give one"
                f" of the two another {_IDENTITIES[what]}."
            )
        entries[key] = entry
        self.origins[origin_key] = origin

    def _is_another(
        self, first: Entry, entry: Entry, origin: Origin, key: tuple[str, object]
    ) -> bool:
        """Whether two different functions want one key; a reload does not count."""
        if _declarer_name(first) != _declarer_name(entry):
            return True
        differs = _user_function(first) is not _user_function(entry)
        return differs and self.origins[key].is_same_load(origin)


mcp = Registry()


def _subject_name(subject: Any) -> str:
    """Return the subject of a toolset as messages name it."""
    if subject is None:
        return ""
    if isinstance(subject, Mapping):
        about = subject.get("info")
        return str(about.get("title", "…") if isinstance(about, Mapping) else "…")
    if view := getattr(subject, "cls", None):
        # For @api_view, only the view's class has the name of the function.
        return f"{view.__module__}.{view.__name__}"
    label = getattr(getattr(subject, "_meta", None), "label", None)
    return label or (qualified_name(subject) if callable(subject) else repr(subject))


def _decorator(
    declare: Callable[[Function], Function],
    function_or_name: Any,
    options: DefinitionOptions,
) -> Any:
    if isinstance(function_or_name, str):
        options["name"] = function_or_name
    elif function_or_name is not None:
        return declare(function_or_name)
    return declare


def _build_function(
    function: Callable[..., object],
    options: RunOptions,
    *,
    key: str = "",
    returns: Any = MISSING,
) -> RegisteredFunction:
    return RegisteredFunction(
        function,
        key=key,
        atomic=options.get("atomic"),
        database=options.get("database", False),
        returns=returns,
    )


def _declarer_name(
    entry: RegisteredFunction | Declaration[Any] | DeclaredEvent | Rule,
) -> str:
    if isinstance(entry, Rule):
        return qualified_name(entry.judge)
    if isinstance(entry, DeclaredEvent):
        return qualified_name(entry.cls)
    function = entry.function if isinstance(entry, Declaration) else entry
    return function.qualified_name


def _user_function(
    entry: RegisteredFunction | Declaration[Any] | DeclaredEvent | Rule,
) -> object:
    if isinstance(entry, Rule):
        return entry.judge
    if isinstance(entry, DeclaredEvent):
        return entry.cls
    registered = entry.function if isinstance(entry, Declaration) else entry
    if isinstance(registered, ReadyFunction):
        return registered.run.run
    return registered.function
