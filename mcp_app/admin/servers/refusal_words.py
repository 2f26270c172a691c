"""Why requests were refused, in two or three words each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.utils.translation import gettext_lazy as _

from mcp_app.audit.turned_away import Reason
from mcp_app.interface.labels import Label

_WORDS: Final[Mapping[str, Label]] = {
    Reason.HOST: _("wrong host"),
    Reason.ORIGIN: _("wrong origin"),
    Reason.NOBODY: _("no token"),
    Reason.CREDENTIALS: _("a token that is not accepted"),
    Reason.SERVER: _("no such server"),
    Reason.SESSION: _("no such session"),
    Reason.METHOD: _("wrong method"),
    Reason.ACCEPT: _("does not accept our answers"),
    Reason.CONTENT_TYPE: _("wrong content type"),
    Reason.SLOW: _("too slow"),
    Reason.BODY: _("too large"),
    Reason.HEADERS_SIZE: _("headers too large"),
    Reason.HEADERS: _("wrong headers"),
    Reason.VERSION: _("unknown version"),
    Reason.JSON: _("no JSON"),
    Reason.MESSAGE: _("wrong message"),
    Reason.TOO_MANY: _("too many at once"),
    Reason.UNAVAILABLE: _("not available"),
    Reason.FAILED: _("the server failed"),
    Reason.OTHER: _("another reason"),
}


def refusal_word(reason: str) -> str:
    """Return a reason in words; processes of another release may know more."""
    return str(_WORDS.get(reason, _WORDS[Reason.OTHER]))
