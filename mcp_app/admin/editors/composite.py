"""The base class of widgets with several inputs under one name, or none."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms


class CompositeWidget(forms.Widget):
    """Passes its value to the template unchanged; no single input gets the label.

    `there` is the suffix of an input that every page with the widget sends.
    """

    use_fieldset = True
    there: ClassVar[str] = ""

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return f"{name}{self.there}" not in data

    def id_for_label(self, id_: str | None) -> str:
        return ""

    def format_value(self, value: Any) -> Any:
        return value
