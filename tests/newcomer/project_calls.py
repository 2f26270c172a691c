"""Compares the tools of a project with its pages and API, in the project's process."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter, defaultdict
from datetime import datetime
from typing import Any, Final

from django.contrib import admin
from django.contrib.admin.utils import display_for_value, quote
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.test import Client as Browser
from django.urls import reverse
from django.utils import dateparse, timezone
from drf_spectacular.generators import EndpointEnumerator

from mcp_app.catalog.registry import Registry
from mcp_app.catalog.secret_fields import is_secret_name
from mcp_app.models import Server
from tests.newcomer.project_rows import all_models, first_row, make_rows
from tests.toolsets.browser import browser_of, rows_after, undone
from tests.toolsets.people import client_of

FORBIDDEN: Final = "You may not do this."
CLOSED: Final = ("mcp_app", "sessions", "admin")
TOOLS: Final = {"change": "admin_get", "add": "admin_form", "delete": "admin_delete"}
KINDS: Final = ("datetime", "date", "time", "duration")
READERS: Final = [getattr(dateparse, f"parse_{each}") for each in KINDS]


def compare_all(commands: list[str]) -> None:
    """Print what was compared, what was left out and why, and what differs.

    The commands make rows; each model without any gets one.
    """
    for command in ("migrate --verbosity 0", *commands):
        call_command(*command.split())
    users = get_user_model()._default_manager
    boss = users.create_superuser("boss", "boss@example.org", "x")
    half = users.create_user("half", "half@example.org", "x", is_staff=True)
    make_rows()
    permissions = [*Permission.objects.order_by("pk")]
    chance = random.Random(7)  # noqa: S311 - no secret
    half.user_permissions.set(chance.sample(permissions, len(permissions) // 2))
    Server.objects.update(access="public")
    sys.stdout.write(json.dumps(Comparison().compare(boss, half)))


class Comparison:
    def __init__(self) -> None:
        self.registry = Registry()
        self.compared = defaultdict[str, Counter[str]](Counter)
        self.left_out: dict[str, str] = {}
        self.unlike: list[str] = []
        self.start = timezone.now()

    def compare(self, boss: Any, half: Any) -> dict[str, Any]:
        registered = admin.site._registry
        models = [each for each in registered if each._meta.app_label not in CLOSED]
        endpoints = EndpointEnumerator().get_api_endpoints()
        # The two lines.
        self.registry.admin_tools(models=models, change=models)
        for view in dict.fromkeys(each[3].cls for each in endpoints):
            self.registry.rest(view)
        for user in (half, boss):
            self._become(user)
            for model in models:
                self._compare_list(model)
                self._compare_rights(model)
        for model in models:
            for row in model._default_manager.order_by("pk")[:3]:
                self._compare_form(model, row)
        self._compare_gets()
        self._become(None)
        self._compare_gets()
        rowless = [each._meta.label for each in models if not first_row(each)]
        return {
            "compared": self.compared,
            "left out": self.left_out | dict.fromkeys(rowless, "no row"),
            "problems": [*self.registry.toolset_problems],
            "unlike": self.unlike,
        }

    def _become(self, user: Any) -> None:
        self.user, self.client = user, client_of(user, self.registry)
        self.http = Browser(
            headers={"Host": "localhost"}, raise_request_exception=False
        )
        if user is not None:
            self.browser = browser_of(user)
            self.http.force_login(user)

    def _call(self, name: str, **arguments: Any) -> tuple[bool, str, Any]:
        """Return whether a tool failed, its text and its data."""
        try:
            result = self.client.try_call(name, **arguments)
        except Exception as error:
            return True, repr(error), None
        return result.is_error, result.text, result.data

    def _page(self, model: Any, view: str, *keys: Any) -> Any:
        name = f"admin:{model._meta.label_lower.replace('.', '_')}_{view}"
        path = reverse(name, args=[*map(quote, keys)])
        return self.browser.get(path, expect_errors=True)

    def _note(self, what: str, model: Any, where: str, status: int, text: str) -> None:
        """Count what was compared, and compare who may not open a page."""
        usual = status in (200, 302)
        package = model.__module__.partition(".")[0]
        self.compared[what if usual else f"{what}: {status}"][package] += 1
        if "refused" in what or (not usual and status != 403):
            self.left_out[where] = f"{status} without us, too: {text}"
        elif (status == 403) != (text == FORBIDDEN):
            self._differ(where, status, text)

    def _differ(self, where: str, theirs: Any, ours: Any) -> None:
        self.unlike.append(f"{self.user}: {where}: {theirs}, but {ours}")

    def _compare_list(self, model: Any) -> None:
        pages = [self._page(model, "changelist") for _ in range(2)]
        path, status = pages[0].request.path, pages[0].status_code
        failed, text, answer = self._call("admin_list", model=model._meta.label_lower)
        self._note("lists", model, path, status, text)
        if status != 200:
            return
        if failed:
            self._differ(path, status, text)
            return
        empty = admin.site._registry[model].get_empty_value_display()
        # What counts the time until now is another in each page.
        cells, again = map(_cells_of, pages)
        for line, later, row in zip(cells, again, answer["rows"], strict=True):
            for name, each in line.items():
                is_same = each in _texts_of(row.get(name), empty)
                if each == later[name] and not is_same:
                    self._differ(f"{path}: {name}", each, row.get(name))
        html = pages[0].html
        actions = {
            each["value"]: _text_of(each)
            for each in html.select("select[name=action] option:not([value=''])")
            if each["value"] != "delete_selected"
        }
        filters = {
            each["data-filter-title"]: [*map(_text_of, each.select("li"))][:50]
            for each in html.select("[data-filter-title]")
        }
        keys = [each["value"] for each in html.select("input.action-select")]
        rows = [each["key"] for each in answer["rows"]] if keys else []
        total = str(answer["total"])
        theirs, ours = (actions, filters, keys), (answer["actions"], answer["filters"])
        if theirs != (*ours, rows) or total not in html.select_one(".paginator").text:
            self._differ(path, theirs, (*ours, rows, total))

    def _compare_rights(self, model: Any) -> None:
        """Compare who may open the pages of a row, and of a new one."""
        label, row = model._meta.label_lower, first_row(model)
        for view, tool in TOOLS.items() if row else ():
            keys = {} if view == "add" else {"key": str(row.pk)}
            page = self._page(model, view, *keys.values())
            _, text, _ = self._call(tool, model=label, **keys)
            self._note("rights", model, page.request.path, page.status_code, text)

    def _compare_form(self, model: Any, row: Any) -> None:
        """Compare what a form does into which nobody puts anything."""
        page, results, sent = self._page(model, "change", row.pk), [], []
        call = {"model": model._meta.label_lower, "key": str(row.pk)}
        by_tool = rows_after(
            lambda: results.append(self._call("admin_change", **call)), self._rows
        )
        [(failed, text, _)], path = results, page.request.path
        if 'name="_save"' not in page.text:
            status = 403 if page.status_code == 200 else page.status_code
            self._note("forms without a button", model, path, status, text)
            return
        form = page.forms[f"{model._meta.model_name}_form"]
        by_page = rows_after(
            lambda: sent.append(form.submit("_save", expect_errors=True)), self._rows
        )
        status, words = sent[0].status_code, " ".join(sent[0].html.text.split())
        # A form that is shown again says what is wrong.
        lines = text.splitlines() if status == 200 else ()
        what = "forms refused" if status == 200 else "forms"
        self._note(what, model, path, status, text)
        if (
            by_tool != by_page
            or failed != (status != 302)
            or not all(each.split(": ", 1)[-1] in words for each in lines)
        ):
            tables = [each for each in by_tool if by_tool[each] != by_page[each]]
            self._differ(path, status, (text, tables))

    def _rows(self) -> dict[str, Any]:
        """Return all rows; moments since the beginning are all the same."""
        return {
            model._meta.label: [
                {
                    name: (isinstance(each, datetime) and each >= self.start) or each
                    for name, each in row.items()
                }
                for row in model._base_manager.order_by("pk").values()
            ]
            for model in all_models(include_auto_created=True)
        }

    def _compare_gets(self) -> None:
        """Compare the answers of the API; the key of everything is 1, or “ana”."""
        for name, tool in self.registry.tools.items():
            method, _, path = getattr(tool.function, "request", "").partition(" ")
            if method != "GET":
                continue
            schema: Any = tool.definition.input_schema
            types = {n: each.get("type") for n, each in schema["properties"].items()}
            required = schema.get("required", ())
            keys = {n: 1 if types[n] == "integer" else "ana" for n in required}
            first, again = (self._get(path.format(**keys)) for _ in range(2))
            with undone():
                failed, text, data = self._call(name, **keys)
            status = first.status_code
            self.compared["GETs"][f"{self.user}: {status}"] += 1
            if failed != (status >= 300):
                self._differ(path, status, text)
            elif status >= 500:
                self.left_out[path] = f"{status} without us, too"
            elif first.content != again.content:
                self.left_out[path] = "another answer each time"
            elif not failed and "json" in first.get("Content-Type", ""):
                body = first.json()
                if data not in (body, {"result": body}):
                    self._differ(path, body, data)

    def _get(self, path: str) -> Any:
        with undone():
            return self.http.get(path, headers={"Accept": "application/json"})


def _cells_of(page: Any) -> list[dict[str, str]]:
    """Return what people see of the cells of a list, by the names of columns."""
    return [
        {
            name: _text_of(cell)
            for cell in line.select("[class*=field-]")
            for each in cell["class"]
            if each.startswith("field-")
            and not is_secret_name(name := each.removeprefix("field-").strip("_"))
        }
        for line in page.html.select("#result_list tbody tr")
    ]


def _text_of(cell: Any) -> str:
    icon = cell.select_one("img[src*=icon-]")
    return icon["alt"] if icon else " ".join(cell.text.split())


def _texts_of(value: Any, empty: str) -> set[str]:
    """Return as what a page may show a value."""
    if value in (None, "", []):
        return {"", "-", empty}
    is_text = isinstance(value, str)
    texts = {value if is_text else json.dumps(value)}
    for read in READERS if is_text else (str, lambda each: each):
        try:
            texts.add(str(display_for_value(read(value), empty)))
        except ValueError:
            continue
    return {" ".join(each.split()) for each in texts}
