"""Labels and help texts of form fields.

They are here and not in the models, so that changing them needs no migration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from django.utils.translation import gettext_lazy as _

from mcp_app.interface.definitions import Label

Words: TypeAlias = Mapping[str, tuple[Label, Label]]
"""The label and the help text of each field, by the name of the field."""

PROGRAM_NAME = _("The name that programs use: letters, digits and _ - .")
IF_CHOSEN = _("Used only if you choose “Only the ones chosen here”.")

EVERY: Words = {
    "title": (_("Title"), _("What people see. A few words.")),
    "name": (_("Name"), _("The name that programs use. Empty: from the title.")),
    "description": (_("Description"), ""),
    "kind": (_("What it does"), ""),
    "function": (
        _("Function"),
        _(
            "The functions that developers registered, with the first line of their"
            " description."
        ),
    ),
    "from_code": (
        _("From code"),
        _("This is read from the code and cannot be edited."),
    ),
    "text": (_("Text"), ""),
    "config": (
        _("Content as JSON"),
        _(
            "Only if the contents are more than one text. This JSON"
            " replaces the text above."
        ),
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
        _(
            "Developers write such rules. A rule applies in addition to the"
            " permission and the groups above."
        ),
    ),
    "timeout": (_("Time limit"), _("In seconds. Empty: the site's usual limit.")),
    "tags": (
        _("Tags"),
        _("Separated by spaces or commas. A server can offer only what has a tag."),
    ),
    "position": (_("Position"), _("Lists are ordered by this number, then by name.")),
    "icons": (
        _("Icons"),
        _('JSON, for example [{"src": "https://example.com/icon.png"}].'),
    ),
    "mime_type": (
        _("Type of contents"),
        _(
            "A media type, for example text/markdown. Empty: the type of the text or"
            " file."
        ),
    ),
    "annotations": (
        _("Annotations"),
        _('JSON, for example {"audience": ["user"], "priority": 0.8}.'),
    ),
    "ttl_ms": (
        _("May be kept for"),
        _("How long clients may use what they read, in seconds."),
    ),
    "public": (
        _("The same for everyone"),
        _("If so, caches on the way to the client may keep the contents, too."),
    ),
}

SERVER: Words = {
    "slug": (
        _("Address"),
        _("The part after /mcp/ in its URL. The server “default” answers at /mcp."),
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
    "version": (_("Version"), _("If empty, clients get the version of this software.")),
    "website_url": (_("Website"), _("For example https://shop.example.com/help.")),
    "access": (
        _("Who may come in"),
        _(
            "A client needs only one of these ways. A developer adds"
            " further ways in the settings, under MCP[“AUTHENTICATION”]."
        ),
    ),
    "listed": (
        _("List it for everybody"),
        _(
            "Strangers may read its title, description, web site and icons, and where"
            " it is. They learn nothing of its tools."
        ),
    ),
    "selection": (_("What it offers"), ""),
    "tools": (_("Tools"), IF_CHOSEN),
    "resources": (_("Resources"), IF_CHOSEN),
    "templates": (_("Resource templates"), IF_CHOSEN),
    "prompts": (_("Prompts"), IF_CHOSEN),
    "events": (_("Event types"), IF_CHOSEN),
    "tags": (_("Tags"), _("Separated by spaces or commas.")),
    "listing": (
        _("What its list of tools shows"),
        _(
            "A model reads the whole list. With more than about 40 tools, let it"
            " search: every tool can still be called by its name."
        ),
    ),
    "listed_tags": (
        _("Tags of tools that are listed, too"),
        _("Used only if clients search. Separated by spaces or commas."),
    ),
    "page_size": (
        _("Page size"),
        _(
            "How many entries of a list a client gets at once, at most 1,000. Many"
            " clients read only the first page and never show the rest."
        ),
    ),
}

RATE: Words = {
    "app": (_("Shown as"), _("In clients that show pages; others show text.")),
    "approval": (
        _("Must somebody agree first?"),
        _("Another person who agrees needs the right “Can approve calls”."),
    ),
    "task": (
        _("Runs in the background"),
        _(
            "For work that takes minutes: a client that can gets a task at once, and"
            " its result later."
        ),
    ),
    "calls_per_minute": (
        _("Calls per minute"),
        _("How often one person may call it. Empty: the site's usual limit."),
    ),
    "keeps_values": (
        _("Keep values of calls"),
        _(
            "Who has the right “Can see values of calls” then sees what clients sent,"
            " up to 4 KiB. Secrets are never kept: passwords, keys and the like."
        ),
    ),
    "hidden_values": (
        _("Never keep"),
        _("Values of these parameters are not kept. Save first to see new ones."),
    ),
}

TOOL: Words = {
    **RATE,
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
        _(
            "Only if the answer has more parts. This JSON replaces the"
            " text and the file above."
        ),
    ),
    "file": (
        _("Image or file"),
        _(
            "A second part of the answer, or all of it: an image, audio, or any other"
            " file. Clients get the file unchanged."
        ),
    ),
}

HINTS: Words = {
    **RATE,
    "read_only": (_("Only reads"), ""),
    "destructive": (_("May delete or overwrite"), ""),
    "idempotent": (_("Twice does the same as once"), ""),
    "open_world": (_("Reaches outside this site"), ""),
}
"""The hints of a tool, which a form joins to one field, and the fields in `RATE`."""

READABLE: Words = {
    "audience": (_("For"), _("Who the contents are meant for.")),
    "importance": (
        _("Importance"),
        _("How important the contents are: 1 is required, 0 is optional."),
    ),
}

DRAFTED: Words = {
    "title": (_("Title"), _("Empty: as drafted here.")),
    "description": (
        _("Description"),
        _("Empty: as drafted here. Say also when a model should use it."),
    ),
}
"""The fields that get a generated text if they are empty."""

LOOKUP: Words = {
    **DRAFTED,
    "config": (_("What it looks up"), ""),
    "now": (_("Preview"), ""),
}
"""The fields of a definition that looks up data of the site."""

CALL: Words = {
    "config": (_("What it calls"), ""),
}
"""The fields of a definition that calls another site."""

RESOURCE: Words = {
    **READABLE,
    "description": (
        _("Description"),
        _(
            "People and models read this to decide whether to read the contents. Say"
            " what the contents are. One or two sentences."
        ),
    ),
    "uri": (
        _("Address"),
        _(
            "For example shop://policy/returns. You choose it; it does not have to be"
            " a web address. Clients use it as the name."
        ),
    ),
    "upload": (_("File"), _("In place of a text: an image, a PDF and so on.")),
    "now": (_("What clients read now"), _("The saved working copy.")),
}

SKILL: Words = {
    **RESOURCE,
    "name": (_("Name"), _("Letters a-z, digits and hyphens. Empty: from the title.")),
    "folder": (
        _("Folder"),
        _("May be empty. It stands before the name: skill://folder/name/SKILL.md."),
    ),
    "description": (
        _("When should an agent use it?"),
        _("An agent decides by this text alone. Say what it does, and for which work."),
    ),
    "config": (_("What it says"), ""),
    "body": (_("Instructions"), _("Markdown. Agents read it as it is.")),
    "files": (
        _("Files"),
        _("The instructions name them, as in “See rules.md”."),
    ),
    "zip": (
        _("Upload a zip or SKILL.md"),
        _(
            "A zip replaces all of this, a SKILL.md only the texts. You see the"
            " difference before you publish it."
        ),
    ),
    "frontmatter": (
        _("More fields of SKILL.md"),
        _('JSON, for example {"license": "MIT"}.'),
    ),
}

RESOURCE_TEMPLATE: Words = {
    **READABLE,
    "description": (
        _("Description"),
        _(
            "People and models read this to decide what to read. Say what the contents"
            " are, and what each name in braces stands for."
        ),
    ),
    "uri_template": (_("Address pattern"), _("For example shop://orders/{number}.")),
    "suggestions": (_("Suggestions"), ""),
}

EVENT_TYPE: Words = {
    **LOOKUP,
    "name": (_("Name"), PROGRAM_NAME),
    "config": (_("When it happens, and what is told"), ""),
    "input_schema": (_("What a subscriber may say"), ""),
    "payload_schema": (_("What is told"), ""),
}

PROMPT: Words = {
    "name": (_("Name"), PROGRAM_NAME),
    "description": (_("Description"), _("Shown in the client's menu. One sentence.")),
    "arguments": (_("Arguments"), ""),
    "config": (_("Messages"), ""),
    "preview": (
        _("Preview"),
        _("What the client gets with these values. Nothing is saved."),
    ),
}
