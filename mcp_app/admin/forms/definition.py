"""The base of all forms of definitions, and the forms of the built-in kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar, cast

from django import forms
from django.conf import settings
from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.core.exceptions import NON_FIELD_ERRORS
from django.utils import translation
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.files import Upload, is_usable
from mcp_app.admin.editors.rows import SHOW
from mcp_app.admin.forms.fields import JsonField, PanelField, PlaceholderTextarea
from mcp_app.admin.forms.fieldsets import (
    ADVICE,
    BEYOND,
    FUNCTION,
    RUNS,
    TEXTS,
    Behind,
    declared_values,
)
from mcp_app.admin.forms.watched_form import WatchedForm
from mcp_app.catalog.registry import mcp
from mcp_app.catalog.row_loader import StoredDefinition, digests_of, stored_definition
from mcp_app.interface.definitions import Definition, Label
from mcp_app.interface.rules import visible
from mcp_app.kinds import KindError, complete_definition, serving_problems, usable_kinds
from mcp_app.kinds.registry import name_of_kind
from mcp_app.models import DefinitionRow
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject

AnyRow = TypeVar("AnyRow", bound=DefinitionRow)

SHORT = {"rows": 3, "class": "vLargeTextField", "data-mcp-count": "tokens"}
LONG = {"rows": 10, "class": "vLargeTextField mcp-text", "data-mcp-count": "tokens"}
READ_BY_KINDS = {
    "annotations",
    "arguments",
    "config",
    "file",
    "function",
    "icons",
    "input_schema",
    "kind",
    "output_schema",
    "suggestions",
    "text",
    "upload",
    "uri",
    "uri_template",
}
"""Fields that kinds read: if one has an error, the kind's checks do not run."""
CONTENT = {"config", "file", "text", "upload"}
"""Fields that together make up the config."""
WIDGETS: Mapping[str, forms.Widget] = {
    "description": forms.Textarea(SHORT),
    "keeps_values": forms.Select(
        choices=[("False", _("No")), ("True", _("for 7 days"))]
    ),
    "uri": forms.TextInput({"class": "vLargeTextField"}),
    "uri_template": forms.TextInput({"class": "vLargeTextField"}),
}


class FormMeta:
    """The base of each form's `Meta`, which adds the model."""

    fields = ()
    widgets = WIDGETS


class DefinitionForm(WatchedForm[AnyRow]):
    """A form for one kind; the kind of a row never changes."""

    KIND: ClassVar[str]
    START: ClassVar[Label] = _("Begin")
    """The link that leads to an empty form."""
    BESIDE: ClassVar[tuple[str, ...]] = ()
    """Fields shown beside the kind's own, whatever the kind."""
    user: ClassVar[AbstractUser | AnonymousUser | None] = None
    """The user of the form; without one it accepts only files that the row has."""
    _uploaded: Upload | None = None
    """The file that a field of the form has read."""

    kind = forms.CharField(required=False, widget=forms.HiddenInput)
    icons = JsonField()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.initial["kind"] = self.KIND
        if "name" in self.fields:
            # An empty name is made from the title.
            self.fields["name"].required = False
        config = self.instance.json("config") or {}
        self._own_files = frozenset(digests_of({"config": config}))

    @classmethod
    def starts(cls) -> Sequence[tuple[Label, Mapping[str, str]]]:
        """Return the links that begin a new definition: a label, and the query
        parameters of the form's URL."""
        return [(cls.START, {})]

    @classmethod
    def kind_fields(cls, config: JsonObject | None) -> Behind:
        """Return the fields of the kind, for a row with this config."""
        heading = _("What it does: %(kind)s") % {"kind": name_of_kind(cls.KIND)}
        return Behind(heading, ("config", *cls.BESIDE))

    def begun_config(self, member: str) -> str:
        """Return the row's config; for a new row, one with what the URL chose."""
        chosen = self.initial.get(member)
        is_begun = self.instance.pk is None and chosen
        return written_text({member: str(chosen)}) if is_begun else self.instance.config

    def typed_config(self) -> JsonObject:
        """Return the typed config, maybe incomplete, for the texts of `drafts`."""
        return {}

    def draft_texts(self, config: JsonObject) -> Mapping[str, str]:
        """Return generated texts for empty fields, by the names of the fields."""
        return {}

    def drafts(self, config: JsonObject | None = None) -> Mapping[str, str]:
        """Return the generated texts for a config, by default for the typed one.

        Clients read them, so they are in the site's language, not in the editor's.
        """
        with translation.override(settings.LANGUAGE_CODE):
            about = self.typed_config() if config is None else config
            return {name: str(text) for name, text in self.draft_texts(about).items()}

    def show_typed(self) -> None:
        """Show the typed values in panels and drafts, if the form is shown again."""
        for name, text in self.drafts().items():
            if name in self.fields:
                self.fields[name].widget.attrs["placeholder"] = text

    def clean_kind(self) -> str:
        return self.KIND

    def column_values(self) -> Mapping[str, object]:
        """Return the values of columns that are set by fields of other names."""
        return {}

    def new_uploads(self) -> list[Upload]:
        """Return the files that were uploaded with this form."""
        return [] if self._uploaded is None else [self._uploaded]

    def keep_uploads(self) -> None:
        """Store the uploaded files, so that the row's config finds them."""
        for upload in self.new_uploads():
            upload.store_content()

    def row_definition(self) -> StoredDefinition[Definition]:
        """Return the definition of the row; raise ValueError or `KindError`."""
        row = stored_definition(self.instance)
        stored = complete_definition(row, usable_kinds(mcp))
        files = stored.uploads.items()
        usable = {name: file for name, file in files if self.may_use_file(name)}
        new = {upload.digest: upload.content for upload in self.new_uploads()}
        return replace(stored, uploads={**usable, **new})

    def may_use_file(self, digest: str) -> bool:
        """Return whether the row already has this file, or the user may use it."""
        return digest in self._own_files or (
            self.user is not None and is_usable(self.user, digest)
        )

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        drafts, values = self.drafts(), self.cleaned_data
        stored = self.drafts(self.instance.json("config") or {})
        for name, text in drafts.items():
            values[name] = values.get(name, text) or text
            # A generated description follows the config, or it would be wrong.
            if name == "description" and values[name] == stored.get(name):
                values[name] = text
        if values.get("name") == "":
            title = slugify(values.get("title", "")) or slugify(drafts.get("title", ""))
            # A title without Latin letters gives no slug: take the kind.
            has_title = drafts or values.get("title")
            values["name"] = self._free_name(title or (self.KIND if has_title else ""))
            if not values["name"]:
                self.add_error("name", self.fields["name"].error_messages["required"])
        return cleaned

    def _free_name(self, name: str) -> str:
        """Return the name, with a number if another definition has it."""
        # Clients accept 64 characters: leave room for a number.
        name, rows = name[:60].rstrip("-"), self._meta.model._default_manager
        alike = rows.filter(name__startswith=name).values_list("name", flat=True)
        used_names = {*alike}
        names = (name, *(f"{name}-{n}" for n in range(2, len(used_names) + 3)))
        return next(each for each in names if each not in used_names) if name else ""

    def full_clean(self) -> None:
        super().full_clean()
        if self.is_bound and self.shows_again():
            self.show_again(self.values_again())
            self.note = self._with_files("")

    def shows_again(self) -> bool:
        """Return whether to show the form again with the typed values, unsaved."""
        return any(name.startswith(SHOW) for name in self.data)

    def values_again(self) -> dict[str, Any]:
        """Return the values of the fields if the form is shown again."""
        return {name: self[name].data for name in self.fields}

    def _post_clean(self) -> None:
        self._check_row()
        self.show_typed()

    def _check_row(self) -> None:
        self.instance.kind = self.KIND
        for column, value in self.column_values().items():
            setattr(self.instance, column, value)
        super()._post_clean()
        if self.errors.keys() & READ_BY_KINDS:
            return
        try:
            stored = self.row_definition()
        except KindError as error:
            # For example, the return annotation of a function cannot become a result.
            self.add_error(self._visible_field(error.field), error.message)
            return
        for problem in serving_problems(
            stored.definition, stored.kind, stored.config, stored.uploads
        ):
            if not problem.incomplete:
                self.add_error(self._visible_field(problem.field), problem.message)

    def _update_errors(self, errors: Any) -> None:
        """Show the errors of a column at the field that edits it."""
        moved: dict[str, list[Any]] = {}
        for column, column_errors in errors.error_dict.items():
            field = self._visible_field(column) or NON_FIELD_ERRORS
            moved.setdefault(field, []).extend(column_errors)
        super()._update_errors(forms.ValidationError(moved))  # type: ignore[misc]

    def _visible_field(self, column: str) -> str | None:
        field = self.field_of_column(column)
        return field if field in self.fields else None

    def set_stored_value(self, name: str, *stored: Any) -> None:
        """Tell a field what is stored, if the form has the field."""
        if name in self.fields:
            cast("Any", self.fields[name]).set_stored_value(*stored)


class JsonForm(DefinitionForm[AnyRow]):
    """The form of a kind that has no form: its config is edited as JSON."""

    config = JsonField(rows=12)


class ConfigForm(DefinitionForm[AnyRow]):
    """A form whose fields are the members of the config."""

    MEMBERS: ClassVar[tuple[str, ...]] = ()
    """The names of the members, which are also the names of their fields."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        config = self.instance.json("config") or {}
        members = {name: config[name] for name in self.MEMBERS if name in config}
        self.initial.update(members)

    @classmethod
    def kind_fields(cls, config: JsonObject | None) -> Behind:
        heading = super().kind_fields(config).heading
        return Behind(heading, (*cls.MEMBERS, *cls.BESIDE))

    def column_values(self) -> Mapping[str, object]:
        members = {
            name: self.cleaned_data[name]
            for name in self.MEMBERS
            if name in self.cleaned_data
        }
        before = self.instance.json("config") or {}
        # Leave out empty members.
        after = {k: v for k, v in {**before, **members}.items() if v is not None}
        changed = {} if after == before else {"config": written_text(after)}
        return {**super().column_values(), **changed}

    def field_of_column(self, column: str) -> str:
        # The first member's field shows the errors of the config.
        is_config = column == "config" and self.MEMBERS
        return self.MEMBERS[0] if is_config else super().field_of_column(column)


class FunctionForm(DefinitionForm[AnyRow]):
    """The form of a definition that runs a registered function."""

    KIND = "function"
    START = _("Choose a function")

    function = forms.CharField(required=False, widget=forms.Select)
    from_code = PanelField("mcp_app/widgets/from_code.html")

    @classmethod
    def kind_fields(cls, config: JsonObject | None) -> Behind:
        return Behind(RUNS, ("function", "from_code", *cls.BESIDE), FUNCTION)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.initial["function"] = self._stored_key()
        if "function" in self.fields:
            keys, stored = sorted(mcp.functions), self.initial["function"]
            keys += [stored] if stored and stored not in keys else []
            none = "---------" if keys else _("Developers have registered no function")
            choices = [("", none), *((key, function_label(key)) for key in keys)]
            self.fields["function"].widget.choices = choices
        if "from_code" in self.fields:
            panel = cast("PanelField", self.fields["from_code"])
            panel.shows(**declared_values(self.function_key(), mcp))

    def column_values(self) -> Mapping[str, object]:
        key = self.cleaned_data.get("function")
        if key is None or (key and key == self._stored_key()):
            return super().column_values()
        config = written_text({"function": key}) if key else NOTHING
        return {**super().column_values(), "config": config}

    def field_of_column(self, column: str) -> str:
        return "function" if column == "config" else super().field_of_column(column)

    def function_key(self) -> str:
        """Return the key of the chosen function: as sent, else as stored."""
        submitted = self.data.get("function") if self.is_bound else None
        return str(submitted) if submitted is not None else self._stored_key()

    def _stored_key(self) -> str:
        config = self.instance.json("config") or {}
        return str(config.get("function", ""))


def function_label(key: str) -> str:
    """Return a function's key with the first line of its docstring."""
    if key not in mcp.functions:
        return str(_("%(key)s (no longer in the code)") % {"key": visible(key)})
    lines = mcp.functions[key].description.strip().splitlines()
    return visible(f"{key}: {lines[0]}" if lines else key)


class TextForm(DefinitionForm[AnyRow]):
    """The form of the kind `text`; other content is edited as JSON."""

    KIND = "text"
    START = _("Write a text")
    EASY: ClassVar[tuple[str, ...]] = ("text",)
    """The fields that edit a simple config."""
    RICH: ClassVar[tuple[str, ...]] = ("config",)
    """The fields for a config that the `EASY` fields cannot show."""
    RICH_ADVICE: ClassVar[Label] = BEYOND
    NOT_BOTH: ClassVar[Label] = _("Fill in either the text or this field, not both.")

    text = forms.CharField(
        required=False, strip=False, widget=PlaceholderTextarea(LONG)
    )
    config = JsonField(rows=8)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        easy = self.easy_values(self.instance.json("config") or {})
        shown = {"config": self.instance.config} if easy is None else easy
        self.initial.update({"config": "", **shown})

    @classmethod
    def easy_values(cls, config: JsonObject) -> dict[str, Any] | None:
        """Return the values of the easy fields; None if they cannot show the config."""
        text = config.get("text", "")
        is_easy = config.keys() <= {"text"} and isinstance(text, str)
        return {"text": text} if is_easy else None

    @classmethod
    def kind_fields(cls, config: JsonObject | None) -> Behind:
        model = cls._meta.model
        if cls.easy_values(config or {}) is None:
            return Behind(TEXTS[model], (*cls.RICH, *cls.BESIDE), cls.RICH_ADVICE)
        fields = (*cls.EASY, *cls.BESIDE)
        return Behind(TEXTS[model], fields, ADVICE[model], more=("config",))

    def clean_text(self) -> str:
        # Browsers send line breaks as CR LF.
        return str(self.cleaned_data["text"]).replace("\r\n", "\n")

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        content_fields = self.fields.keys() & CONTENT
        if content_fields and not self.errors.keys() & content_fields:
            self._clean_content()
        return cleaned

    def config_from_fields(self) -> JsonObject | None:
        """Return the config from the easy fields; None if they are empty."""
        text = self.cleaned_data.get("text")
        return {"text": text} if text else None

    def field_of_column(self, column: str) -> str:
        if column == "config" and self.cleaned_data.get("text"):
            return "text"
        return super().field_of_column(column)

    def _clean_content(self) -> None:
        content = self.config_from_fields()
        has_json = bool(self.cleaned_data.get("config"))
        if content is not None and has_json:
            self.add_error("config", self.NOT_BOTH)
        elif content is not None:
            same = self.instance.json("config") == content
            config = self.instance.config if same else written_text(content)
            self.cleaned_data["config"] = config
        elif not has_json:
            # Unfinished work can be saved; publishing checks that it is complete.
            self.cleaned_data["config"] = NOTHING


def written_text(value: object) -> str:
    """Return a value as JSON for a column."""
    return jsonrpc.write(value).decode()


NOTHING = written_text({})
"""The config of a definition without content yet."""
