"""The form of a skill: instructions for agents, with files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.files import ANY_TYPE, Upload, upload_of
from mcp_app.admin.editors.json_editor import WORDS, Initial, JsonEditor, SheetField
from mcp_app.admin.editors.rows import (
    MAX_ROWS,
    LinesField,
    NotRepresentable,
    RowForm,
    formset_class_of,
)
from mcp_app.admin.forms.definition import ConfigForm, written_text
from mcp_app.admin.forms.fields import JsonField
from mcp_app.admin.forms.fieldsets import Behind
from mcp_app.admin.forms.resource import ResourceForm
from mcp_app.admin.page.wording import SKILL
from mcp_app.catalog.skill_zip import SkillArchive, read_skill_zip
from mcp_app.interface.rules import visible
from mcp_app.models import Blob, Resource
from mcp_app.models.fields import digest, parse_json
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.skills import SKILL_FILE, SkillError, check_paths

_FOLDER = r"[A-Za-z0-9_~-][A-Za-z0-9._~-]*(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*"
_BODY = {"rows": 18, "class": "vLargeTextField mcp-json", "data-mcp-count": "tokens"}


class SkillFileForm(RowForm):
    """One file of a skill; its `name` is its path."""

    name = forms.CharField(
        label=_("Path"),
        required=False,
        help_text=_("Like scripts/check.py. Empty: the file's name."),
    )
    file = forms.FileField(label=_("File"), required=False)
    upload = forms.CharField(required=False, widget=forms.HiddenInput)

    new_file: Upload | None = None

    def clean_name(self) -> str:
        file = self.files.get(self.add_prefix("file"))
        path = str(self.cleaned_data["name"] or getattr(file, "name", ""))
        try:
            check_paths([path])
        except SkillError as error:
            raise ValidationError(str(error)) from None
        return path

    def clean_file(self) -> object:
        # Ignore the browser's media type: it follows from the path.
        self.new_file = upload_of(self.cleaned_data["file"], ANY_TYPE)
        if self.new_file is None and not self["upload"].data:
            raise ValidationError(_("Choose a file."))
        return self.cleaned_data["file"]

    def clean_upload(self) -> str:
        kept = str(self.cleaned_data["upload"])
        return kept if self.new_file is None else self.new_file.digest


class SkillFileSheet(JsonEditor):
    """The files of a skill."""

    formset = formset_class_of(SkillFileForm)
    row_template = "mcp_app/widgets/skill_file.html"
    multipart = True
    words = {
        **WORDS,
        "as_table": _("Edit file by file"),
        "add": _("Add a file"),
        "new": _("New file"),
        "beyond": _("They are kept as they are: %(reason)s. Edit them as JSON."),
        "both": _("You changed both the files and the JSON. Choose which to keep."),
        "keep_table": _("Keep the files"),
        "empty": _("No files yet."),
    }

    def initial_rows(self, value: Any) -> Initial:
        files = value or []
        # A row has the two members `path` and `upload`; a third is a media type.
        if len(files) > MAX_ROWS or any(len(file) > 2 for file in files):  # noqa: PLR2004
            message = _("more than %d files, or media types; a zip may have more")
            raise NotRepresentable(message % MAX_ROWS)
        blobs = Blob.objects.filter(digest__in=[file["upload"] for file in files])
        sizes = dict(blobs.values_list("digest", "size"))
        return [
            {**file, "name": file["path"], "size": sizes.get(file["upload"])}
            for file in files
        ]

    def value_of_rows(self, rows: Iterable[RowForm], base: Any) -> Any:
        values = [row.cleaned_data for row in rows]
        return [{"path": value["name"], "upload": value["upload"]} for value in values]


class SkillForm(ConfigForm[Resource], ResourceForm):
    """A skill; its address follows from its folder and its name."""

    KIND = "skill"
    WORDS = SKILL
    MEMBERS = ("body", "files", "frontmatter")
    BESIDE = ("title", "name", "folder", "description")

    folder = forms.CharField(required=False)
    body = LinesField(strip=False, widget=forms.Textarea(_BODY))
    files = SheetField(SkillFileSheet())  # type: ignore[assignment]
    frontmatter = JsonField()
    zip = forms.FileField(required=False)
    _unpacked: Sequence[Upload] = ()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        config = self.instance.json("config") or {}
        for name in ("files", "frontmatter"):
            self.initial[name] = written_text(config[name]) if name in config else ""
        self.set_stored_value("files", self.initial["files"])
        path = self.instance.uri.removeprefix("skill://").split("/")
        # The last two parts are the name and SKILL.md.
        self.initial["folder"] = "/".join(path[:-2])

    @classmethod
    def kind_fields(cls, config: JsonObject | None) -> Behind:
        return Behind(
            super().kind_fields(config).heading,
            (*cls.BESIDE, "body", "files", "zip"),
            more=("frontmatter",),
            without=("uri", "mime_type", "audience", "importance"),
        )

    def clean_files(self) -> Any:
        text = self.cleaned_data["files"]
        return parse_json(text) if text else None

    def clean_frontmatter(self) -> Any:
        text = self.cleaned_data["frontmatter"]
        fields = parse_json(text) if text else {}
        if not isinstance(fields, dict) or {"name", "description"} & fields.keys():
            rule = _("Write a JSON object. Name and description have their own fields.")
            raise ValidationError(rule)
        return fields or None

    def clean_folder(self) -> str:
        folder = str(self.cleaned_data["folder"]).strip("/")
        if folder and not re.fullmatch(_FOLDER, folder):
            rule = _("“%(folder)s” has other characters than A-Z, a-z, 0-9, - _ . ~ /")
            raise ValidationError(rule % {"folder": visible(folder)})
        return folder

    def clean_zip(self) -> SkillArchive | None:
        upload = upload_of(self.cleaned_data["zip"], ANY_TYPE)
        if upload and {"name", "description", *self.MEMBERS} & {*self.changed_data}:
            raise ValidationError(_("Upload it or change fields, not both at once."))
        try:
            return read_skill_zip(upload.content) if upload else None
        except ValueError as error:
            raise ValidationError(str(error)) from None

    def clean(self) -> dict[str, Any] | None:
        if archive := self.cleaned_data.get("zip"):
            self.cleaned_data |= self._values_of_archive(archive)
        cleaned = super().clean()
        for name in self.errors.keys() - {"zip"} if "zip" in self.errors else ():
            # The other fields are empty because the zip was to fill them.
            del self.errors[name]
        return cleaned

    def _values_of_archive(self, archive: SkillArchive) -> dict[str, Any]:
        frontmatter = {**archive.frontmatter}
        names = {"name", "description"} & frontmatter.keys()
        values: dict[str, Any] = {name: str(frontmatter.pop(name)) for name in names}
        values |= {"body": archive.body, "frontmatter": frontmatter or None}
        if archive.files is not None:
            files = sorted(archive.files.items())
            self._unpacked = [Upload(digest(each), each, "") for _, each in files]
            values["files"] = [{"path": p, "upload": digest(each)} for p, each in files]
            self.left_out = archive.left_out
        return values

    def column_values(self) -> Mapping[str, object]:
        name, folder = map(self.cleaned_data.get, ("name", "folder"))
        path = [part for part in str(folder or "").split("/") if part]
        # A missing name has its own error: avoid a second error about the address.
        # The separator makes "skill:/" to "skill://".
        uri = "/".join(["skill:/", *path, str(name or "name"), SKILL_FILE])
        return {**super().column_values(), "uri": uri}

    def field_of_column(self, column: str) -> str:
        moved: Mapping[str, str] = {"uri": "folder", "config": "files"}
        return moved.get(column) or super().field_of_column(column)

    def new_uploads(self) -> list[Upload]:
        rows = self["files"].data.submitted_rows if "files" in self.fields else None
        files = [getattr(row, "new_file", None) for row in rows or ()]
        return [*self._unpacked, *(file for file in files if file is not None)]
