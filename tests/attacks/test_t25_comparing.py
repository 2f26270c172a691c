"""T25: no secret is compared byte by byte, so no time tells how much of it was right.

Tokens and sessions are looked up by their SHA-256: no column has them.
"""

from __future__ import annotations

import pytest

from mcp_app.models import AccessToken, Session
from mcp_app.models.fields import DigestField


@pytest.mark.parametrize("model", [AccessToken, Session])
def test_no_column_has_the_secret_itself(model: type[AccessToken | Session]) -> None:
    names = {each.name for each in model._meta.get_fields()}
    assert isinstance(model._meta.get_field("digest"), DigestField)
    assert not names & {"token", "secret", "session_id", "key"}
