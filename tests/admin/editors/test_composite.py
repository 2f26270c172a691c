from __future__ import annotations

from mcp_app.admin.editors.files import FilePartWidget
from mcp_app.admin.editors.hints import HintsWidget
from mcp_app.admin.editors.json_editor import SheetWidget
from mcp_app.admin.editors.message_forms import MessageSheet
from mcp_app.admin.editors.variables import VariablesWidget


def test_what_says_that_a_page_has_the_widget() -> None:
    widgets = {
        "a": VariablesWidget(),
        "a-as": SheetWidget(MessageSheet()),
        "a-asked": HintsWidget(),
        "a-kept": FilePartWidget(),
    }
    for there, widget in widgets.items():
        assert not widget.value_omitted_from_data({there: ""}, None, "a")
        assert widget.value_omitted_from_data({"b": ""}, None, "a")
        assert widget.id_for_label("id_a") == ""
        assert widget.use_fieldset
        assert widget.format_value(widget) is widget
