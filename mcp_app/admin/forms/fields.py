"""Form fields and widgets for definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, cast

from django import forms
from django.core.exceptions import ValidationError

from mcp_app.admin.editors import json_texts
from mcp_app.admin.editors.json_texts import lines_from_browser

ATTRIBUTES = {"class": "vLargeTextField mcp-json", "spellcheck": "false"}


class JsonField(forms.CharField):
    """JSON as text; the stored bytes are kept if nobody changed it."""

    def __init__(self, *, rows: int = 5, is_schema: bool = False) -> None:
        widget = forms.Textarea({**ATTRIBUTES, "rows": rows})
        super().__init__(required=False, strip=False, widget=widget)
        self._is_schema = is_schema
        self.stored = ""

    def prepare_value(self, value: Any) -> Any:
        return json_texts.shown_text(value) if isinstance(value, str) else value

    def has_changed(self, initial: Any, data: Any) -> bool:
        shown = json_texts.shown_text(str(initial or ""))
        return lines_from_browser(data).strip() != shown.strip()

    def parts(self, value: Any) -> Mapping[str, object]:
        return {"": lines_from_browser(value).strip()}

    def clean(self, value: Any) -> str:
        text = lines_from_browser(value)
        if not self.has_changed(self.stored, text):
            return self.stored
        if not text.strip():
            return ""
        read = json_texts.check_schema_text if self._is_schema else json_texts.read
        try:
            read(text)
        except ValueError as error:
            raise ValidationError(str(error)) from None
        return text.strip()


MOST_MS: Final = 2_147_483_647
"""The largest value of the column."""


def seconds_of(milliseconds: int) -> str:
    """Return milliseconds as seconds, written without zeros at the end."""
    return format(Decimal(milliseconds).scaleb(-3).normalize(), "f")


class SecondsField(forms.DecimalField):
    """Seconds, for a column of milliseconds; nothing is 0."""

    def __init__(self) -> None:
        most = Decimal(MOST_MS).scaleb(-3)
        super().__init__(required=False, min_value=0, max_value=most, decimal_places=3)

    def prepare_value(self, value: Any) -> Any:
        return seconds_of(value) if isinstance(value, int) else value

    def clean(self, value: Any) -> Any:
        seconds = super().clean(value)
        return int(seconds.scaleb(3)) if seconds is not None else 0

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(self.clean(data) != (initial or 0))
        except ValidationError:
            return True


class PlaceholderTextarea(forms.Textarea):
    """A text area with the names that may be used in it as `{{name}}`."""

    template_name = "mcp_app/widgets/placeholders.html"

    def __init__(self, attrs: Mapping[str, Any] | None = None) -> None:
        super().__init__(dict(attrs or {}))
        self.names: Iterable[str] = ()
        self.source = ""
        """The field from which the page's script reads the names."""

    def get_context(
        self, name: str, value: Any, attrs: dict[str, Any] | None
    ) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        return {**context, "names": list(self.names), "source": self.source}


class Panel(forms.Widget):
    """Something to read in the middle of a form; it sends nothing."""

    def __init__(self, template_name: str) -> None:
        super().__init__()
        self.template_name = template_name
        self.shown: Mapping[str, Any] = {}
        self.later: Callable[[], Mapping[str, Any]] | None = None

    def get_context(
        self, name: str, value: Any, attrs: dict[str, Any] | None
    ) -> dict[str, Any]:
        shown = self.later() if self.later is not None else self.shown
        return {**super().get_context(name, value, attrs), **shown}

    def id_for_label(self, id_: str | None) -> str:
        return ""


class PanelField(forms.Field):
    """The field that holds a panel's place in a form."""

    def __init__(self, template_name: str) -> None:
        super().__init__(required=False, widget=Panel(template_name))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return False

    def parts(self, value: Any) -> Mapping[str, object]:
        return {}

    def shows(self, **shown: Any) -> None:
        """Set the context of the panel's template."""
        cast("Panel", self.widget).shown = shown

    def shows_later(self, shown: Callable[[], Mapping[str, Any]]) -> None:
        """Ask for the context where the panel is rendered, and only there."""
        cast("Panel", self.widget).later = shown
