"""The forms of definitions that call another site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar, cast

from django.utils.translation import gettext as _

from mcp_app.admin.editors.hints import ADDS, DELETES, READS, Answer
from mcp_app.admin.editors.json_editor import EditorInput, SheetField
from mcp_app.admin.editors.json_texts import parse_or_none
from mcp_app.admin.editors.schema_fields import Field
from mcp_app.admin.editors.site_call.answer_tree import Part
from mcp_app.admin.editors.site_call.form import CallForm, CallSheet
from mcp_app.admin.editors.site_call.parameters import name_parts
from mcp_app.admin.forms.arguments import arguments_of
from mcp_app.admin.forms.definition import DefinitionForm, written_text
from mcp_app.admin.forms.fieldsets import Behind
from mcp_app.admin.forms.resource import ResourceForm, ResourceTemplateForm
from mcp_app.admin.forms.tool import ToolForm
from mcp_app.admin.page.wording import CALL, DRAFTED, RESOURCE, RESOURCE_TEMPLATE, TOOL
from mcp_app.egress.sites import usable_sites
from mcp_app.interface.definitions import Label
from mcp_app.kinds import KindError
from mcp_app.kinds.http.config import draft_texts, read_http_config
from mcp_app.kinds.http.kind import allowed_names, configured_call
from mcp_app.kinds.other_sites import shared_key_findings
from mcp_app.kinds.placeholders import names_in_value
from mcp_app.models import DefinitionRow, Resource, ResourceTemplate, Tool
from mcp_app.models.tokens import Secret
from mcp_app.protocol.json_types import JsonObject

AnyRow = TypeVar("AnyRow", bound=DefinitionRow)


@dataclass(frozen=True, slots=True, repr=False)
class Fetched:
    """The result of a call, for the page; `parts` are the parts of a JSON answer."""

    fields: Sequence[Field] = ()
    problem: str = ""
    status: str = ""
    details: Sequence[str] = ()
    shown: object = None
    """The result as *Try it* shows a trial."""
    parts: Sequence[Part] = ()


class HttpForm(DefinitionForm[AnyRow]):
    """The call of another site, and the answer of the site."""

    ONLY_READS: ClassVar[bool] = True
    _config_errors: Any = None
    fetched: ClassVar[Fetched | None] = None
    """The result of the last call."""

    config = SheetField(CallSheet(only_reads=True))

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "config" in self.fields:
            field = cast("SheetField", self.fields["config"])
            field.sheet_widget.sheet = CallSheet(
                only_reads=self.ONLY_READS,
                parameters=self.page_schema(),
                beside=staticmethod(self._context_beside),
                answer=self.fetched.parts if self.fetched else (),
            )
            field.set_stored_value(self.begun_config("site"))
            if not self.is_bound:
                self.instance.config = self.begun_config("site")
        self.show_typed()

    def page_schema(self) -> JsonObject | None:
        """Return the schema of the parameters that the page shows, if it has any."""
        return None

    @classmethod
    def starts(cls) -> Sequence[tuple[Label, Mapping[str, str]]]:
        return [(each.title, {"site": key}) for key, each in usable_sites().items()]

    @classmethod
    def kind_fields(cls, config: JsonObject | None) -> Behind:
        return Behind(_("What it calls"), ("config", *cls.BESIDE))

    # -- beside the form ---------------------------------------------------------------

    def _context_beside(self) -> Mapping[str, Any]:
        """Return the context about the call that the form describes now."""
        fetched = self.fetched
        needed = ("mcp_app.try", "mcp_app.behind")
        may_fetch = self.user is not None and self.user.has_perms(needed)
        context: dict[str, Any] = {"fetched": fetched, "may_fetch": may_fetch}
        try:
            definition = self.row_definition().definition
            call = configured_call(definition, self.instance.json("config") or {})
        except (KindError, ValueError) as error:
            return {**context, "problem": str(error)}
        if may_fetch:
            fields = fetched.fields if fetched else ()
            context["arguments"] = fields or arguments_of(definition).fields
        if may_fetch and not call.only_reads:
            from mcp_app.workbench.trying.tickets import new_ticket  # noqa: PLC0415

            ticket = new_ticket(cast("Any", self.user).pk, self.instance)
            context["once"] = Secret(ticket)
        return {
            **context,
            "call": call,
            "findings": shared_key_findings(definition, call.site),
        }

    # -- shown again -------------------------------------------------------------------

    def call_form(self) -> CallForm | None:
        """Return the sent form of the call; None if it is invalid or not in use."""
        if "config" not in self.fields or not self.is_bound:
            return None
        sent: EditorInput = self["config"].data
        rows = sent.submitted_rows
        is_usable = rows is not None and sent.result.way == "table" and rows.is_valid()
        form = rows.forms[0] if rows is not None and is_usable else None
        return form if isinstance(form, CallForm) else None

    def shows_again(self) -> bool:
        form = self.call_form()
        is_pasted = form is not None and form.cleaned_data.get("paste")
        return bool(is_pasted or self.fetched) or super().shows_again()

    def full_clean(self) -> None:
        super().full_clean()
        if not self.is_bound and self._config_errors:
            # Also show the errors of the call in a form that is shown again.
            self._errors["config"] = self._config_errors

    def _post_clean(self) -> None:
        super()._post_clean()
        self._config_errors = self.errors.get("config")
        form = self.call_form()
        if form is not None and self.has_error("config"):
            definition = self.row_definition().definition
            config = self.instance.json("config") or {}
            # [1] are the errors.
            for error in read_http_config(config, *allowed_names(definition))[1]:
                form.blame(error.place, error.message)


class HttpToolForm(HttpForm[Tool], ToolForm):
    """A tool that calls another site."""

    WORDS = {**TOOL, **CALL, **DRAFTED}
    REACHES_OUTSIDE = True
    ONLY_READS = False

    @classmethod
    def kind_fields(cls, config: JsonObject | None) -> Behind:
        names = ", ".join(sorted(names_in_value(config or {})))
        names = names or _("what is named above")
        method = (config or {}).get("method", "GET")
        says = _("as %(method)s says, unless you choose") % {"method": method}
        folded = {
            "input_schema": (_("Parameters as a table"), names),
            "changes": (_("What it changes"), says),
        }
        return super().kind_fields(config)._replace(folded=folded)

    def page_schema(self) -> JsonObject | None:
        shown = self.data.get("input_schema-shown") if self.is_bound else None
        schema = parse_or_none(self.instance.input_schema if shown is None else shown)
        properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
        return schema or {} if isinstance(properties, dict) else None

    def typed_config(self) -> JsonObject:
        typed = self.cleaned_data if hasattr(self, "cleaned_data") else {}
        return parse_or_none(typed.get("config", self.instance.config)) or {}

    def draft_texts(self, config: JsonObject) -> Mapping[str, str]:
        return draft_texts(config)

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        form = self.call_form()
        schema = self.cleaned_data.get("input_schema")
        if form is not None and form.named and schema is not None:
            base = parse_or_none(schema) or {}
            _config, merged = name_parts(form.typed_config, base, form.named)
            self.cleaned_data["input_schema"] = written_text(merged)
        return cleaned

    def column_values(self) -> Mapping[str, object]:
        answer = self.cleaned_data.get("changes")
        config = parse_or_none(self.cleaned_data.get("config", "")) or {}
        effect_before = _effect_of(self.instance.json("config") or {})
        # If nobody chose another effect, it follows from the method.
        if (
            isinstance(answer, Answer)
            and answer.effect in ("", effect_before)
            and config.get("path")
        ):
            self.cleaned_data["changes"] = replace(answer, effect=_effect_of(config))
        return super().column_values()

    def values_again(self) -> dict[str, Any]:
        values = super().values_again()
        schema = self.cleaned_data.get("input_schema")
        sent = values.get("input_schema")
        if schema is not None and isinstance(sent, EditorInput):
            values["input_schema"] = sent.with_text(schema)
            field = cast("SheetField", self.fields["config"])
            form_class = cast("Any", field.sheet_widget.sheet.formset).form
            form_class.parameters = parse_or_none(schema) or {}
        if "changes" in self.cleaned_data:
            values["changes"] = self.cleaned_data["changes"]
        return values


def _effect_of(config: JsonObject) -> str:
    """Return the effect of the call's method (RFC 9110, section 9.2)."""
    method = config.get("method", "GET")
    return {"GET": READS, "DELETE": DELETES}.get(method, ADDS)


class HttpResourceForm(HttpForm[Resource], ResourceForm):
    """A resource that is read from another site."""

    WORDS = {**RESOURCE, **CALL}


class HttpTemplateForm(HttpForm[ResourceTemplate], ResourceTemplateForm):
    """A template whose resources are read from another site."""

    WORDS = {**RESOURCE_TEMPLATE, **CALL}
