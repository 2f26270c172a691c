"""T25: no secret is compared byte by byte, so no time tells how much of it was right.

Tokens and sessions are looked up by their SHA-256; marks and signatures are compared
by `hmac.compare_digest`.  This is shown by the code's shape: each `==` whose sides have
the name of a secret stands here, with the reason why it compares none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from mcp_app.models import AccessToken, Session
from mcp_app.models.fields import DigestField

ROOT: Final = Path(__file__).parents[2]
SECRET: Final = re.compile(
    r"token|secret|digest|signature|mark|session_id|password|cookie|hmac|nonce", re.I
)
NO_SECRET: Final = {
    "mcp_app/models/versions.py: served[row.pk].hash != digest(text)": (
        "of a text that clients are shown"
    ),
    "mcp_app/publishing/bundle/reading.py: digest(content) != value['digest']": (
        "of a file, beside it"
    ),
    "mcp_app/server/round_trip.py: earlier.digest == question.digest": (
        "of questions, from a state that was unsealed"
    ),
    "mcp_app/server/round_trip.py: asked == question.digest": (
        "of questions, from a state that was unsealed"
    ),
    "mcp_app/transports/http/resumption.py:"
    " earlier.digest != await identity.digest_of(exchange)": (
        "of requests of one session, whose client made both"
    ),
    "mcp_app/streams/announcing.py: kind == ACCESS_TOKEN": "a kind of principals",
    "mcp_app/auth/principals.py: each.kind != ACCESS_TOKEN": "a kind of principals",
    "mcp_app/auth/issuers/tokens.py: claims.get('typ') == ID_TOKEN": "a type",
    "mcp_app/protocol/uri_templates.py: self.mark == '?'": "a character of a template",
}
BY_DIGEST: Final = {
    "mcp_app/protocol/cursors.py": "hmac.compare_digest(",
    "mcp_app/streams/event_ids.py": "hmac.compare_digest(",
    "mcp_app/models/tokens.py": "self.filter(digest=digest(token))",
    "mcp_app/auth/token_cache.py": "return digest(token)",
    "mcp_app/auth/connections.py": "return compare_digest(stored, digest(text))",
    "mcp_app/streams/session_store.py": "digest = digest_of(session_id)",
}
"""Where secrets that come from clients are looked up."""


def name_of(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case ast.Call(func=inner) | ast.Subscript(value=inner):
            return name_of(inner)
    return ""


def compared(source: str) -> Iterator[str]:
    """Yield comparisons for equality in which something is named like a secret."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Compare):
            continue
        if not any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops):
            continue
        if any(SECRET.search(name_of(each)) for each in (node.left, *node.comparators)):
            yield ast.unparse(node)


def test_each_comparison_of_what_sounds_like_a_secret_is_known() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {each}"
        for path in (ROOT / "mcp_app").rglob("*.py")
        for each in compared(path.read_text(encoding="utf-8"))
    }
    assert found == set(NO_SECRET)


@pytest.mark.parametrize("source", ["a.token == b", "digest(x) != y", "x == secret"])
def test_a_comparison_of_secrets_would_be_found(source: str) -> None:
    assert list(compared(source)) == [source]


@pytest.mark.parametrize(("path", "line"), BY_DIGEST.items())
def test_where_secrets_are_looked_up(path: str, line: str) -> None:
    assert line in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("model", [AccessToken, Session])
def test_no_column_has_the_secret_itself(model: type[AccessToken | Session]) -> None:
    names = {each.name for each in model._meta.get_fields()}
    assert isinstance(model._meta.get_field("digest"), DigestField)
    assert not names & {"token", "secret", "session_id", "key"}
