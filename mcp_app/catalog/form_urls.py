"""URLs in form questions, which a person might click (client/elicitation, "Safe URL").

`urls_in_question` checks a question when it is asked, `findings_of` the code that
asks.  `findings_of` sees a message or form that is written in the call, or that has a
name in the module.  Any other is checked only when it is asked.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any, Final

from django.forms import BaseForm
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from mcp_app.catalog.callables import layers_of
from mcp_app.catalog.findings import Finding, must_fix
from mcp_app.catalog.forms import form_schema
from mcp_app.catalog.registered_function import ReadyFunction, RegisteredFunction
from mcp_app.protocol.json_types import JsonObject

_URL: Final = re.compile(r"\b(?:https?://|www\.)[^\s\"'<>]+", re.IGNORECASE)
_ASKING: Final = frozenset({"elicit", "Elicit"})
_MEMBERS: Final = ("title", "description")


def urls_in_question(message: object, schema: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the name of a member and a URL, for each URL in a form question.

    The member is "message", or the "title" or "description" of a field or a choice.
    """
    return _urls_in_texts([("message", message), *_texts_of_schema(schema)])


def findings_of(function: RegisteredFunction | ReadyFunction) -> Iterator[Finding]:
    """Yield what must be fixed: each URL in the form questions that a function asks."""
    if isinstance(function, ReadyFunction) or function.inspected.context is None:
        return
    innermost = [*layers_of(function.function)][-1]
    for call in _asking_calls(innermost):
        texts = _texts_of_call(call, _values_by_name(innermost))
        for member, url in dict.fromkeys(_urls_in_texts(texts)):
            message = _(
                "A form question has the URL %(url)s in its %(member)s. Forms must not"
                " have URLs that people could click: ask for a visit with elicit_url()."
            )
            yield must_fix("form-url", "", message % {"url": url, "member": member})


def _urls_in_texts(texts: Iterable[tuple[str, object]]) -> Iterator[tuple[str, str]]:
    for member, text in texts:
        if isinstance(text, str | Promise):
            yield from ((member, url) for url in _URL.findall(str(text)))


def _texts_of_schema(schema: JsonObject) -> Iterator[tuple[str, object]]:
    for field in schema["properties"].values():
        items = field.get("items", {})
        choices = [*field.get("oneOf", ()), *items.get("anyOf", ())]
        for each in (field, *choices):
            yield from ((name, each[name]) for name in _MEMBERS if name in each)
        yield from (("title", name) for name in field.get("enumNames", ()))


# -- what code shows ----------------------------------------------------------------


def _values_by_name(function: Any) -> Mapping[str, object]:
    names = dict(getattr(function, "__globals__", {}))
    cells = getattr(function, "__closure__", None) or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        # The variable may have no value yet.
        with suppress(ValueError):
            names[name] = cell.cell_contents
    return names


def _asking_calls(function: Any) -> Iterator[ast.Call]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            if getattr(called, "attr", getattr(called, "id", "")) in _ASKING:
                yield node


def _texts_of_call(
    call: ast.Call, names: Mapping[str, object]
) -> Iterator[tuple[str, object]]:
    arguments = dict(zip(("message", "form"), call.args, strict=False))
    arguments |= {each.arg: each.value for each in call.keywords if each.arg}
    if "message" in arguments:
        # This also finds parts of f-strings, and arguments of translation functions.
        for node in ast.walk(arguments["message"]):
            if isinstance(node, ast.Constant | ast.Name | ast.Attribute):
                yield "message", _plain_value(node, names)
    if "form" in arguments:
        yield from _texts_of_form(_plain_value(arguments["form"], names))


def _plain_value(node: ast.expr, names: Mapping[str, object]) -> object:
    """Return the value of a name, a member or a literal; None for any other node."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _plain_value(node.value, names)
        # To read an attribute of another object may run code.
        is_plain = isinstance(owner, ModuleType | type)
        return getattr(owner, node.attr, None) if is_plain else None
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return None


def _texts_of_form(form: object) -> Iterator[tuple[str, object]]:
    if isinstance(form, type) and issubclass(form, BaseForm):
        # No form is made, because its choices might read the database.
        for field in getattr(form, "base_fields", {}).values():
            yield from (("title", field.label), ("description", field.help_text))
    elif isinstance(form, type | Mapping):
        # If this is no form, `form_schema` refuses it when it is asked.
        with suppress(Exception):
            yield from _texts_of_schema(form_schema(form).schema)
