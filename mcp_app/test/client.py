"""A client for tests, in the test's own thread and transaction.

Its server runs on a loop in one thread of the OS process (`mcp-test`).  While that
works, the test's thread waits, and does everything that needs the database: so tools
see the test's rows, and what they write is gone when the test is over.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Coroutine, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import partial, wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.contrib.auth.models import AbstractBaseUser
from django.db import connection

from mcp_app.catalog.registry import mcp
from mcp_app.interface.principal import STDIO, Principal, Scope
from mcp_app.interface.questions import Cancelled
from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.pools.pump import PUMPS, Pump
from mcp_app.process.resting import PumpUserCode, RestingProcess
from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.revisions import LATEST, REVISIONS
from mcp_app.publishing.publication import publish_default_server
from mcp_app.test.results import (
    Refused,
    Result,
    ToolFailed,
    Unanswered,
    as_json,
    data_of,
    question_text,
    result_of_answer,
    text_of,
)
from mcp_app.transports.in_process import (
    Caller,
    Failure,
    InProcessClient,
    Message,
    SessionRefused,
)
from mcp_app.transports.stdio.connection import NotServed, NotSignedIn

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")

CAPABILITIES: Final[JsonObject] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {},
}


class _SharedLoop:
    """The loop of all clients in this OS process; one thread waits for it at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting_thread: int | None = None
        self.loop = asyncio.new_event_loop()
        self.pump = PUMPS[self.loop] = Pump()
        run = self.loop.run_forever
        threading.Thread(target=run, name="mcp-test", daemon=True).start()

    def run(self, function: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
        """Run a coroutine on the loop, and in this thread what needs the database.

        Raises RuntimeError if this thread would wait for itself.
        """
        if self._waiting_thread == threading.get_ident():
            raise RuntimeError(
                "A tool or an answer cannot use a test client: the test's thread waits"
                " for the first call. Call the function itself."
            )
        if _is_in_loop():
            raise RuntimeError(
                "An event loop runs in this thread. Await the method whose name begins"
                " with “a”, such as client.acall(…)."
            )
        with self._lock:
            self._waiting_thread = threading.get_ident()
            future = asyncio.run_coroutine_threadsafe(function(), self.loop)
            try:
                return self.pump.wait_for(future)
            finally:
                future.cancel()
                self._waiting_thread = None


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_shared: _SharedLoop | None = None


def _shared_loop() -> _SharedLoop:
    global _shared  # noqa: PLW0603 - one per OS process is what this is
    _shared = _shared or _SharedLoop()
    return _shared


def _forget_loop() -> None:
    """Begin anew in a forked child (`test --parallel`), which has no such thread."""
    global _shared  # noqa: PLW0603 - as above
    _shared = None
    PUMPS.clear()


os.register_at_fork(after_in_child=_forget_loop)


def _make_async(
    method: Callable[Concatenate[Any, Arguments], Value],
) -> Callable[Concatenate[Any, Arguments], Coroutine[Any, Any, Value]]:
    """Return a method for async tests: it runs in the thread of their queries."""
    return wraps(method)(sync_to_async(method))


class Client:
    """Calls the tools of a server as a user's client does, and reads the rest of it.

    Args:
        user: Who calls; without a user only a public server answers.
        server: The server's address (slug).
        revision: One of the five revisions of the protocol.
        scope: What the user's token lets a client do, such as `Scope(read_only=True)`.
        answers: What the client says if a tool asks, by the question's message or by
            its method (`"elicitation/create"`, `"sampling/createMessage"`,
            `"roots/list"`).  A dict sends a form; a text is what the model says; a list
            of URIs are root folders; `Declined()` and `Cancelled()` send nothing.  A
            callable gets the question's params and returns one of these; it may read
            and write rows.
        capabilities: What the client says that it can do; by default everything.
        approved: Whether tools run that wait for a person (`approval`); else they say
            that nobody can be asked here.

    What a tool raises is raised as it is.  Methods raise `ToolFailed` if the tool
    answers with an error, `Refused` if the server does, and `Unanswered` if the client
    has no answer to a question; all three are AssertionErrors.  Async tests await
    `acall`, `atools` and so on.
    """

    _registry = mcp
    _process: RestingProcess | None = None
    _problem: BaseException | None = None
    """Why a question was not answered."""

    def __init__(
        self,
        user: AbstractBaseUser | None = None,
        server: str = DEFAULT_SLUG,
        revision: str = LATEST.version,
        *,
        scope: Scope | None = None,
        answers: Mapping[str, object] | None = None,
        capabilities: JsonObject = CAPABILITIES,
        approved: bool = False,
    ) -> None:
        if not isinstance(user, AbstractBaseUser | None):
            raise TypeError(f"{user!r} is no user: give the row, not its name.")
        if revision not in REVISIONS:
            raise ValueError(
                f"{revision!r} is no revision of the protocol: {', '.join(REVISIONS)}."
            )
        self._user, self._server, self._scope = user, server, scope
        self._revision, self._capabilities = REVISIONS[revision], capabilities
        self._answers, self._approved = answers or {}, approved
        self._messages: list[JsonObject] = []
        self._questions: list[JsonObject] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> Client:
        # `setUpTestData` gives each test a copy of what it makes.
        return Client(
            deepcopy(self._user, memo),
            self._server,
            self._revision.version,
            scope=self._scope,
            answers=deepcopy(self._answers, memo),
            capabilities=self._capabilities,
            approved=self._approved,
        )

    def call(self, name: str, /, **arguments: object) -> Result:
        """Call a tool; raise what it raises, or `ToolFailed` if it says that it failed.

        Arguments are JSON values, and what Django writes as JSON, such as dates.
        """
        result = self.try_call(name, **arguments)
        if result.is_error:
            self._raise_own_error()
            raise ToolFailed(name, result)
        return result

    def try_call(self, name: str, /, **arguments: object) -> Result:
        """Call a tool; return its result also if it failed: `result.is_error`."""
        params = {"name": name, "arguments": as_json(arguments)}
        return self._request("tools/call", params, name)

    def tools(self) -> list[JsonObject]:
        """Return the tools that the user is offered, all pages."""
        return self._list("tools/list", "tools")

    def resources(self) -> list[JsonObject]:
        """Return the resources that the user is offered, all pages."""
        return self._list("resources/list", "resources")

    def templates(self) -> list[JsonObject]:
        """Return the resource templates that the user is offered, all pages."""
        return self._list("resources/templates/list", "resourceTemplates")

    def prompts(self) -> list[JsonObject]:
        """Return the prompts that the user is offered, all pages."""
        return self._list("prompts/list", "prompts")

    def read(self, uri: str) -> Result:
        """Read a resource."""
        return self._request("resources/read", {"uri": uri}, uri)

    def prompt(self, name: str, /, **arguments: str) -> Result:
        """Get a prompt; `content` are its messages."""
        params = {"name": name, "arguments": arguments}
        return self._request("prompts/get", params, name)

    def complete(
        self, of: str, argument: str, value: str = "", /, **context: str
    ) -> list[str]:
        """Return the values that complete an argument of a prompt or a URI template.

        `context` are the arguments that the person has filled in before.
        """
        ref = {"type": "ref/prompt", "name": of}
        if "://" in of:
            ref = {"type": "ref/resource", "uri": of}
        params: JsonObject = {
            "ref": ref,
            "argument": {"name": argument, "value": value},
            **({"context": {"arguments": context}} if context else {}),
        }
        raw = self._request("completion/complete", params, of).raw
        return list(raw["completion"]["values"])

    def assertHidden(self, name: str) -> None:  # noqa: N802 - as unittest names them
        """Fail unless a tool or prompt, or the resource of a URI, is as if unknown.

        That is: no list has it, and who asks for it reads what one reads who asks for
        something that does not exist.
        """
        if "://" in name:
            listed = {each["uri"] for each in self.resources()}
            listed |= {each["uriTemplate"] for each in self.templates()}
            requests: list[Callable[[str], Result]] = [self.read]
        else:
            listed = {each["name"] for each in (*self.tools(), *self.prompts())}
            requests = [self.call, self.prompt]
        if name in listed:
            raise AssertionError(f"{name} is not hidden: a list of this user has it.")
        missing_name = f"{name}-that-is-not-there"
        for request in requests:
            text = _refusal_of(request, name)
            unknown = _refusal_of(request, missing_name).replace(missing_name, name)
            if text != unknown:
                raise AssertionError(
                    f"{name} is not hidden: who asks for it reads {text!r}, and not"
                    f" {unknown!r}."
                )

    acall = _make_async(call)
    atry_call = _make_async(try_call)
    atools = _make_async(tools)
    aresources = _make_async(resources)
    atemplates = _make_async(templates)
    aprompts = _make_async(prompts)
    aread = _make_async(read)
    aprompt = _make_async(prompt)
    acomplete = _make_async(complete)
    aassertHidden = _make_async(assertHidden)  # noqa: N815 - as above

    # -- in the test's thread -------------------------------------------------------

    def _list(self, method: str, member: str) -> list[JsonObject]:
        raw = self._request(method, {}, method).raw
        items: list[JsonObject] = raw[member]
        while "nextCursor" in raw:
            raw = self._request(method, {"cursor": raw["nextCursor"]}, method).raw
            items += raw[member]
        return items

    def _request(self, method: str, params: JsonObject, what: str) -> Result:
        if self._user is not None and self._user.pk is None:
            raise ValueError(f"The user {self._user} has no row: save it first.")
        shared = _shared_loop()
        if not _is_in_loop():
            # If the test may not use the database, this raises the clearest error.
            connection.cursor().close()
            connection.validate_no_broken_transaction()
        answer = shared.run(partial(self._talk, shared, method, params))
        if self._problem is not None:
            raise self._problem
        if "error" in answer:
            self._raise_own_error()
            raise Refused(what, answer["error"])
        raw: JsonObject = answer["result"]
        content = raw.get("content") or raw.get("contents") or raw.get("messages") or []
        text = text_of(content)
        return Result(
            data=data_of(raw, text, structured=self._revision.structured_content),
            text=text,
            content=content,
            progress=self._params_of("notifications/progress"),
            logs=self._params_of("notifications/message"),
            questions=self._questions,
            raw=raw,
        )

    def _raise_own_error(self) -> None:
        """Raise what the function raised, unless that is an error for the client."""
        run = self._client.run
        error = self._code.error
        if error is not None and run is not None and run.ending.failure:
            raise error

    def _params_of(self, method: str) -> list[JsonObject]:
        return [each["params"] for each in self._messages if each["method"] == method]

    # -- on the loop ----------------------------------------------------------------

    async def _talk(
        self, shared: _SharedLoop, method: str, params: JsonObject
    ) -> JsonObject:
        """Return the answer to a request, once all its questions are answered."""
        if self._process is None or self._process.loop is not shared.loop:
            self._process = self._begin(shared)
        # The call must see the rights and events that the test has just changed.
        self._process.rights.forget_all()
        self._process.events.mark_stale()
        self._questions, self._problem = [], None
        await shared.pump.run(self._code.begin_call)
        try:
            await self._check_served()
            return await self._client.converse(method, params)
        except SessionRefused as refused:
            return dict(json.loads(refused.answer))
        except Failure as failure:
            return {"error": {"code": failure.code, "message": failure.message}}
        except ProtocolError as error:
            message = error.message
            if isinstance(error, NotSignedIn):
                message = f"{message} Give the client a user: Client(user)."
            return {"error": {"code": error.code, "message": message}}

    def _begin(self, shared: _SharedLoop) -> RestingProcess:
        """Return a new process, after making a client of its server."""
        user, self._pump = self._user, shared.pump
        principal = Principal.ANONYMOUS
        if user is not None:
            principal = Principal(
                kind=STDIO,
                user_id=str(user.pk),
                user_name=user.get_username(),
                client="test",
                scope=self._scope,
            )
        caller = Caller(
            principal=principal,
            person="",
            revision=self._revision,
            name="mcp_app.test",
            capabilities=self._capabilities,
            approved=self._approved,
        )
        process = RestingProcess(self._registry)
        self._code = PumpUserCode(process, shared.pump)
        adapters = replace(process.adapters, user_code=self._code, topics=self._code)
        self._client = InProcessClient(
            process,
            self._server,
            caller,
            adapters=replace(adapters, audit=None, tasks=None, webhooks=None),
            respond=self._answer_question,
            observe=self._note_message,
        )
        return process

    async def _check_served(self) -> None:
        """Raise `NotServed` if the server is not for this user."""
        try:
            await self._client.check_served()
        except NotServed:
            if self._server != DEFAULT_SLUG:
                raise
            # A `TransactionTestCase` deletes all rows, also that of the default server.
            make = partial(publish_default_server, self._registry)
            await self._pump.run_uncounted(make)
            await self._client.check_served()

    def _note_message(self, message: Message) -> None:
        content = json.loads(message.text)
        if "method" not in content:
            return
        if message.from_client:
            # The client has answered, so the call runs again from its beginning.
            self._messages = []
        else:
            self._messages.append(content)

    async def _answer_question(self, method: str, params: JsonObject) -> JsonObject:
        """Return the result with which a question is answered; raises `Failure`."""
        self._questions.append({"method": method, **params})
        text = question_text(method, params)
        try:
            if text not in self._answers and method not in self._answers:
                raise Unanswered(method, params)
            answer = self._answers.get(text, self._answers.get(method))
            if callable(answer):
                answer = await self._pump.run(partial(answer, params))
            return result_of_answer(method, params, answer)
        except Failure:
            raise
        except BaseException as error:
            # Such as `pytest.fail`, which is no Exception.
            self._problem = self._problem or error
            return result_of_answer(method, params, Cancelled())


def _refusal_of(request: Callable[[str], Result], name: str) -> str:
    """Return what somebody reads who asks for something by this name."""
    try:
        return f"an answer: {request(name).text}"
    except Refused as error:
        return f"{error.code} {error.message}"
    except ToolFailed as error:
        return error.result.text
