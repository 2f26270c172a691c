"""Whether a run of the suite has written anything that nobody may read again.

    SECRECY=results/secrecy pytest ...    each process notes what it makes and writes
    python -m tests.secrecy               says what was secret

`make test-all` does both.

Each process of the suite notes the secrets that it makes: access tokens, ids of
sessions, codes and keys of apps, what is sealed, the site's key and what is derived
from it.  It looks at
every record of a log, of each level, whether that is shown or not; at rows, before a
test or a database ends; and at answers that are errors.  What looks like a secret there
is noted, too: which of it is one is known at the end, for a process may write what
another one has made.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import secrets
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from copy import copy
from functools import wraps
from pathlib import Path
from typing import Any, Final

VARIABLE: Final = "SECRECY"
ROOT: Final = Path(__file__).resolve().parents[1]
LENGTH: Final = 43
LIKE_A_SECRET: Final = re.compile(rf"[A-Za-z0-9_-]{{{LENGTH},}}")
PURPOSES: Final = (
    *("request-state", "cursors", "query cursors", "call arguments"),
    *("client", "consent", "oauth-code", "oauth-refresh"),
)
CLIENTS: Final = frozenset(
    {"fastmcp", "FastMCP", "httpcore", "httpcore2", "httpx", "httpx2", "mcp"}
)
"""Whose logs are a client's, which may know what is its own."""
ADDRESSES: Final = frozenset({"uvicorn.access"})
"""Whose logs have the addresses of requests: of HTTP+SSE they hold the session's id,
and docs/http-sse.md says how to keep it out."""
KNOWN: Final = "known"
SEEN: Final = "seen"
COUNTED: Final = "counted"
TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table'"


class Watch:
    """What one process has made, and written; in files, a line each."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._fixed: set[str] = set()
        self._seen: set[str] = set()
        self._counts: Counter[str] = Counter()
        atexit.register(self._count)

    def knows(self, secret: str) -> None:
        self._write(KNOWN, secret)

    def knows_key(self, key: str) -> None:
        from mcp_app.protocol.cursors import derived_key  # noqa: PLC0415

        derived = (derived_key(key, purpose).hex() for purpose in PURPOSES)
        for each in (key, *derived):
            if each not in self._fixed:
                self._fixed.add(each)
                self.knows(each)

    def looks_at(self, kind: str, where: str, text: str) -> None:
        """Note what might be a secret in a text that was written."""
        self._counts[kind] += 1
        fixed = [each for each in self._fixed if each in text]
        for each in (*fixed, *LIKE_A_SECRET.findall(text)):
            # The same stands in many places, such as the digest of a row.
            if each not in self._seen:
                self._seen.add(each)
                self._write(SEEN, f"{each}\t{kind} {where}")

    def _write(self, name: str, line: str) -> None:
        # One call, so that a process that is killed leaves whole lines.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        file = os.open(self._folder / f"{name}-{os.getpid()}", flags)
        try:
            os.write(file, f"{line.replace(chr(10), ' ')}\n".encode())
        finally:
            os.close(file)

    def _count(self) -> None:
        for kind, count in self._counts.items():
            self._write(COUNTED, f"{count}\t{kind}")
        self._counts.clear()


_watch: Watch | None = None


def watch() -> None:
    """Begin to look, where the environment says so; once the apps are loaded.

    A server that was forked since may have a key of its own.
    """
    global _watch  # noqa: PLW0603 - one of each process
    if VARIABLE not in os.environ:
        return
    from django.conf import settings  # noqa: PLC0415

    if _watch is not None:
        _watch.knows_key(settings.SECRET_KEY)
        return

    from mcp_app.protocol.cursors import Sealer  # noqa: PLC0415
    from mcp_app.protocol.oauth import texts  # noqa: PLC0415
    from mcp_app.streams import event_subscriptions  # noqa: PLC0415

    seal = Sealer.seal

    def seal_column(text: str, public_id: str) -> str:
        sealer = event_subscriptions._sealer()
        return seal(sealer, {"text": text}, public_id.encode())

    # Nobody gets these: they are sealed because their rows keep them.
    event_subscriptions._seal_text = seal_column
    _watch = Watch(ROOT / os.environ[VARIABLE])
    _watch.knows_key(settings.SECRET_KEY)
    noting = _noting(_watch)
    secrets.token_urlsafe = noting(secrets.token_urlsafe)
    Sealer.seal = noting(Sealer.seal)  # type: ignore[method-assign]
    # It has the function already; codes and later refresh tokens are computed.
    texts.token_urlsafe = noting(texts.token_urlsafe)  # type: ignore[attr-defined]
    texts._hmac_text = noting(texts._hmac_text)
    _look_at_logs(_watch)


def _noting(own: Watch) -> Callable[[Callable[..., str]], Callable[..., str]]:
    def noting(makes: Callable[..., str]) -> Callable[..., str]:
        @wraps(makes)
        def made(*args: Any, **options: Any) -> str:
            secret = makes(*args, **options)
            if len(secret) >= LENGTH:
                own.knows(secret[:LENGTH])
            return secret

        return made

    return noting


def _look_at_logs(own: Watch) -> None:
    """See each record, of each level, and show those that would be shown anyway."""
    handle = logging.Logger.handle
    makes_traceback = logging.Formatter()

    def handled(logger: logging.Logger, record: logging.LogRecord) -> None:
        client = record.name.partition(".")[0]
        if client not in CLIENTS and record.name not in ADDRESSES:
            with _uncounted():
                # A copy: how it is formatted is kept within.
                text = makes_traceback.format(copy(record))
            own.looks_at("log", record.name, text)
        if record.levelno >= logger.getEffectiveLevel():
            handle(logger, record)

    def is_heard(logger: logging.Logger, level: int) -> bool:
        return not logger.disabled and logger.manager.disable < level

    logging.Logger.handle = handled  # type: ignore[assignment, method-assign]
    logging.Logger.isEnabledFor = is_heard  # type: ignore[assignment, method-assign]


@contextmanager
def _uncounted() -> Iterator[None]:
    """Keep statements of this thread from those that a test counts.

    A template's record shows its whole context, and so fetches what is in it.
    """
    from django.db import connections  # noqa: PLC0415

    there = connections.all(initialized_only=True)
    counting = [each for each in there if each.force_debug_cursor]
    for connection in counting:
        connection.force_debug_cursor = False
    try:
        yield
    finally:
        for connection in counting:
            connection.force_debug_cursor = True


def is_watching() -> bool:
    return _watch is not None


def note(token: str) -> None:
    """Note that a token which somebody else made is secret, each of its parts."""
    if _watch is not None:
        for each in token.split("."):
            if len(each) >= LENGTH:
                _watch.knows(each)


def look_at_answer(status: int, headers: Mapping[str, str], body: bytes) -> None:
    if _watch is not None and status >= 400:
        told = f"{dict(headers)} {body.decode(errors='replace')}"
        _watch.looks_at("error", str(status), told)


def look_at_rows(table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    if _watch is not None:
        for row in rows:
            _watch.looks_at("row", table, " ".join(map(_text, row)))


def _text(value: object) -> str:
    # Texts as they are: what is quoted has other characters between.
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode(errors="replace")
    return str(value)


def look_at_file(database: Path) -> None:
    if _watch is None or not database.exists():
        return
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        for (table,) in connection.execute(TABLES).fetchall():
            look_at_rows(table, connection.execute(f'SELECT * FROM "{table}"'))  # noqa: S608


def look_at_rows_of_test() -> None:
    """Look at what a test has stored, before that is taken back."""
    if _watch is None:
        return
    from django.db import DatabaseError, connection  # noqa: PLC0415

    try:
        with connection.cursor() as cursor:
            for table in connection.introspection.table_names(cursor):
                quoted = connection.ops.quote_name(table)
                cursor.execute(f"SELECT * FROM {quoted}")  # noqa: S608 - a table
                look_at_rows(table, cursor.fetchall())
    except (DatabaseError, RuntimeError):
        # It may have broken its transaction, or never had a database.
        return


def found(folder: Path) -> list[str]:
    known = {*_lines(folder, KNOWN)}
    return sorted(
        {
            f"{where}: {candidate}"
            for line in _lines(folder, SEEN)
            for candidate, _tab, where in [line.partition("\t")]
            if any(each in known for each in _parts(candidate))
        }
    )


def _parts(candidate: str) -> Iterator[str]:
    """Yield what of a text may be a secret: itself, and what stands within it."""
    yield candidate
    for at in range(len(candidate) - LENGTH + 1):
        yield candidate[at : at + LENGTH]


def counted(folder: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in _lines(folder, COUNTED):
        count, _tab, kind = line.partition("\t")
        counts[kind] += int(count)
    counts["secret"] = sum(1 for _ in _lines(folder, KNOWN))
    return counts


def _lines(folder: Path, name: str) -> Iterator[str]:
    for path in folder.glob(f"{name}-*"):
        yield from path.read_text(encoding="utf-8").splitlines()


def main(folder: Path) -> int:
    """Print what was looked at, and what was found; return the exit status."""
    there, counts = found(folder), counted(folder)
    missing = [each for each in ("secret", "log", "row", "error") if not counts[each]]
    sys.stdout.write(
        f"{counts['secret']:,} secrets, {counts['log']:,} records of logs,"
        f" {counts['row']:,} rows, {counts['error']:,} errors: {len(there)} found.\n"
    )
    for each in there:
        sys.stdout.write(f"  {each}\n")
    for each in missing:
        sys.stdout.write(f"Nothing was looked at: {each}.\n")
    return int(bool(there or missing))


if __name__ == "__main__":
    raise SystemExit(main(ROOT / os.environ.get(VARIABLE, "results/secrecy")))
