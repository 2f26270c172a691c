"""Template tags of apps: their page has everything in it, as hosts load nothing."""

from __future__ import annotations

import re
from base64 import b64encode
from contextlib import suppress
from mimetypes import guess_type
from pathlib import Path

from django import template
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.exceptions import ImproperlyConfigured
from django.template import TemplateSyntaxError
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


@register.simple_tag
def mcp_inline(path: str) -> SafeString:
    """Put a static file into the page: styles, a script, or a picture as an address.

    Raises `TemplateSyntaxError` if there is no such static file.
    """
    content = _read_static_file(path)
    media_type = guess_type(path)[0] or "application/octet-stream"
    if media_type == "text/css":
        text = content.decode().replace("</", r"<\/")
        html = f"<style>{text}</style>"
    elif media_type in ("text/javascript", "application/javascript"):
        # `</script` would end the script too early, and `<!--` may hide its end.
        text = re.sub(r"<(?=/script|!--)", r"\\x3C", content.decode(), flags=re.I)
        html = f"<script>{text}</script>"
    else:
        html = f"data:{media_type};base64,{b64encode(content).decode()}"
    return mark_safe(html)  # noqa: S308 - files of the site's developers


@register.simple_tag
def mcp_app_script() -> SafeString:
    """Put in the script by which a page speaks to its host."""
    return mcp_inline("mcp_app/app.js")


def _read_static_file(path: str) -> bytes:
    found = finders.find(path)
    if isinstance(found, str):
        return Path(found).read_bytes()
    # Without STATIC_ROOT nothing is collected.
    with suppress(ImproperlyConfigured):
        if staticfiles_storage.exists(path):
            # Collected already, and its source is not on this machine.
            with staticfiles_storage.open(path) as file:
                return bytes(file.read())
    raise TemplateSyntaxError(f"There is no static file {path!r}.")
