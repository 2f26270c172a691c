"""What the forms say beside their fields: a label and a help for each.

They stand here and not in the models, so that better words need no migration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

Said: TypeAlias = "str | _StrPromise"
Words: TypeAlias = Mapping[str, tuple[Said, Said]]

PROGRAM_NAME = _("What programs call it: letters, digits and _ - .")

EVERY: Words = {
    "title": (_("Title"), _("What people see. A few words.")),
    "name": (_("Name"), _("What programs call it.")),
    "kind": (_("What stands behind it"), ""),
    "function": (
        _("Function"),
        _("What developers registered, with the first line of what it says."),
    ),
    "from_code": (_("From code"), _("It is read from the code and cannot be edited.")),
    "text": (_("Text"), ""),
    "config": (
        _("Content as JSON"),
        _("For contents that are more than one text, in place of the text above."),
    ),
    "permission": (
        _("Permission"),
        _(
            "Only people with this permission see and use it, for example "
            "shop.view_order. Empty: everyone who may use the server."
        ),
    ),
    "groups": (
        _("Groups"),
        _(
            "Only people in one of these groups, and superusers, see and use it. "
            "Nothing chosen: people in any group, or none."
        ),
    ),
    "rule": (
        _("Rule in code"),
        _("Developers write such rules. It decides in addition to what stands above."),
    ),
    "timeout": (_("Time limit"), _("In seconds. Empty: the site's usual limit.")),
    "tags": (
        _("Tags"),
        _("Separated by spaces or commas. A server can offer only what has a tag."),
    ),
    "position": (
        _("Position"),
        _("Lists are ordered by this number, then by name."),
    ),
    "icons": (
        _("Icons"),
        _('JSON, for example [{"src": "https://example.com/icon.png"}].'),
    ),
    "mime_type": (
        _("Type of contents"),
        _("A media type, for example text/markdown. Empty: what the text or file is."),
    ),
    "annotations": (
        _("Annotations"),
        _('JSON, for example {"audience": ["user"], "priority": 0.8}.'),
    ),
    "ttl_ms": (
        _("May be kept for"),
        _("How long clients may use what they read, in milliseconds."),
    ),
    "public": (
        _("The same for everyone"),
        _("Caches on the way to the client may keep it, too."),
    ),
}

SERVER: Words = {
    "slug": (
        _("Address"),
        _("What follows /mcp/ in its URL. The server “default” answers at /mcp."),
    ),
    "description": (
        _("Description"),
        _("What people read about this server in their client."),
    ),
    "instructions": (
        _("Instructions"),
        _(
            "Read by the model once, when a client connects. Say what this server is "
            "for and in which order to use its tools. Up to 500 words."
        ),
    ),
    "version": (_("Version"), _("Empty: the version of this software.")),
    "website_url": (_("Website"), _("For example https://shop.example.com/help.")),
    "access": (
        _("Who may come in"),
        _(
            "Whoever one of them knows comes in. A developer adds others in the "
            "settings, under MCP[“AUTHENTICATION”]."
        ),
    ),
    "selection": (_("What it offers"), ""),
    "tools": (_("Tools"), _("For “Only the ones chosen here”.")),
    "resources": (_("Resources"), _("For “Only the ones chosen here”.")),
    "templates": (_("Resource templates"), _("For “Only the ones chosen here”.")),
    "prompts": (_("Prompts"), _("For “Only the ones chosen here”.")),
    "tags": (_("Tags"), _("Separated by spaces or commas.")),
    "page_size": (
        _("Page size"),
        _("How many entries a client gets with one page of a list."),
    ),
}

TOOL: Words = {
    "name": (_("Name"), PROGRAM_NAME),
    "description": (
        _("Description"),
        _(
            "The model reads this to decide when to use the tool. Say what it does, "
            "when to use it, and what comes back. Two to four sentences."
        ),
    ),
    "input_schema": (_("Parameters"), ""),
    "output_schema": (
        _("The answer's shape"),
        _("JSON Schema. Empty: what the function declares, or none."),
    ),
    "changes": (_("What it changes"), ""),
    "config": (
        _("Content as JSON"),
        _("For answers of more parts, in place of the text and the file above."),
    ),
    "file": (
        _("Image or file"),
        _(
            "A second part of the answer, or all of it: an image, audio, or any other "
            "file. Clients get it as it is."
        ),
    ),
}

READABLE: Words = {
    "audience": (_("For"), _("Whom the contents are meant for.")),
    "importance": (_("Importance"), _("How much is lost where it is left out.")),
}

RESOURCE: Words = {
    **READABLE,
    "uri": (
        _("Address"),
        _(
            "For example shop://policy/returns. Made up by you; it does not have to "
            "be a web address. Clients use it as the name."
        ),
    ),
    "upload": (
        _("File"),
        _("In place of a text: an image, a PDF and so on."),
    ),
    "now": (_("What clients read now"), _("As it is saved.")),
}

RESOURCE_TEMPLATE: Words = {
    **READABLE,
    "uri_template": (_("Address pattern"), _("For example shop://orders/{number}.")),
    "suggestions": (_("Suggestions"), ""),
}

PROMPT: Words = {
    "name": (_("Name"), PROGRAM_NAME),
    "description": (
        _("Description"),
        _("Shown in the client's menu. One sentence."),
    ),
    "arguments": (_("Arguments"), ""),
    "config": (_("Messages"), ""),
    "preview": (
        _("Preview"),
        _("What the client gets with these values. Nothing is saved."),
    ),
}
