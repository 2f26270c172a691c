"""What was seen of a server through its address, as values.

`observe_server` sends the probes itself; `observations_of_page` reads what a browser
has seen of them.  For the rules both are the same, except that a browser does not show
everything.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, Strict, ValidationError

from mcp_app.auth.resources import WELL_KNOWN
from mcp_app.protocol.json_types import JsonObject
from mcp_app.transports.http.probe import (
    HEADER,
    PING,
    PROBE_HEADERS,
    Probe,
    issue_ticket,
)
from mcp_app.workbench.checking.client import (
    LARGEST,
    PATIENCE_S,
    Failure,
    Part,
    Reply,
    Request,
    send_request,
)

SLASH: Final = "slash"
"""The small probe at the address with a slash at its end."""
BESIDE: Final = "beside"
"""The small probe while another request is open."""
METADATA: Final = "metadata"
"""The document by which programs find out who issues tokens for the server."""
NAMES: Final = (*(each.value for each in Probe), SLASH, BESIDE, METADATA)
MAX_PAGE_BYTES: Final = 256 * 1024
"""The most bytes of a page's report."""
MAX_PARTS: Final = 200
MAX_HEADERS: Final = 64
MAX_DURATION_S: Final = 3_600.0
_MAX_HEADER_LENGTH: Final = 1_000
_LAST_MS: Final = 10**15
"""Later times in a report are refused."""


@dataclass(frozen=True, slots=True)
class Observations:
    """What came of each request, by its name in `NAMES`."""

    url: str
    replies: Mapping[str, Reply]
    body: int = 0
    """Bytes that the probe with a large body has sent."""
    by_browser: bool = False

    @property
    def main(self) -> Reply:
        """The reply to the first probe."""
        return self.replies.get(Probe.TICKS.value, Reply())


@dataclass(frozen=True, slots=True)
class Report:
    """What a server reported of a probe; see `transports.http.probe`."""

    host: str
    scheme: str
    forwarded: Mapping[str, str]
    headers: Mapping[str, str]
    body: int
    process: str
    interface: str
    clock_ms: int
    database_ms: int | None


@dataclass(frozen=True, slots=True)
class Stream:
    """The report, when each tick came, and whether the end came."""

    report: Report | None
    ticks: tuple[float, ...]
    ended: bool


def observe_server(
    url: str,
    server: str,
    body: int,
    tls: ssl.SSLContext,
    *,
    silence: float = 0.0,
    signs_in: bool = False,
) -> Observations:
    """Send the probes to a server and return what came; blocks for some seconds.

    `body` is the size of a large body in bytes.  With `silence`, in seconds, the probe
    of that name is sent, too; with `signs_in` the metadata are asked for.
    """
    asking = _Asking(url, server, tls)
    replies = {Probe.TICKS.value: asking.send_probe(Probe.TICKS)}
    if read_report(replies[Probe.TICKS]) is None:
        # It may be another site: send it no more of our tickets, and no large body.
        return Observations(url, replies)
    replies[SLASH] = asking.send_probe(Probe.BODY, url=with_other_slash(url))
    replies[Probe.REFUSAL] = asking.send_probe(Probe.REFUSAL)
    replies[Probe.BODY] = asking.send_probe(Probe.BODY, b"x" * body)
    replies |= asking.side_by_side()
    if signs_in:
        request = Request(metadata_address(url), {}, method="GET")
        replies[METADATA] = send_request(request, tls)
    if silence:
        patience = silence + PATIENCE_S
        replies[Probe.SILENCE] = asking.send_probe(Probe.SILENCE, patience=patience)
    return Observations(url, replies, body)


def with_other_slash(url: str) -> str:
    """Return an address without the slash at its end, or with one."""
    return url.removesuffix("/") if url.endswith("/") else f"{url}/"


def metadata_address(url: str) -> str:
    """Return where clients look for the metadata of a server at this address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path}"


@dataclass(frozen=True, slots=True)
class _Asking:
    """Sends probes to one server."""

    url: str
    server: str
    tls: ssl.SSLContext

    def send_probe(
        self,
        probe: Probe,
        body: bytes = PING,
        *,
        url: str = "",
        patience: float = PATIENCE_S,
        begun: Callable[[], object] = lambda: None,
    ) -> Reply:
        headers = {
            **PROBE_HEADERS,
            "Content-Type": "application/json",
            "Accept-Encoding": "gzip",
            HEADER: issue_ticket(self.server, probe),
        }
        request = Request(url or self.url, headers, body, patience=patience)
        return send_request(request, self.tls, begun)

    def side_by_side(self) -> dict[str, Reply]:
        """Ask while another request is open, which takes some seconds."""
        begun = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            open_request = pool.submit(self.send_probe, Probe.HOLD, begun=begun.set)
            # If a proxy buffers the answer, its first byte comes only at the end.
            begun.wait(_HEADSTART_S)
            beside = self.send_probe(Probe.BODY)
            return {BESIDE: beside, Probe.HOLD.value: open_request.result()}


_HEADSTART_S: Final = 0.5


# -- what a page has seen -----------------------------------------------------------


class Unreadable(ValueError):
    """What a page sent is not what its script sends; the text says what is wrong."""


_Text = Annotated[str, Field(max_length=LARGEST)]
_Seconds = Annotated[float, Field(ge=0, le=MAX_DURATION_S)]
_Part = Annotated[tuple[_Seconds, _Text], Strict(False)]


class _PageReply(BaseModel, strict=True):
    status: int = Field(ge=0, lt=600)
    headers: dict[_Text, _Text] = Field(max_length=MAX_HEADERS)
    parts: list[_Part] = Field(max_length=MAX_PARTS)
    seconds: _Seconds
    failure: Failure | None = Field(None, strict=False)


def observations_of_page(raw: object, url: str, body: int) -> Observations:
    """Read what the script of a page has seen of its probes; raise `Unreadable`.

    `raw` is the value of its JSON, which had at most `MAX_PAGE_BYTES` bytes.
    """
    if not isinstance(raw, dict) or not raw.keys() <= set(NAMES):
        raise Unreadable(f"The page may send answers of these alone: {NAMES}.")
    replies = {name: _parse_reply(name, value) for name, value in raw.items()}
    return Observations(url, replies, body, by_browser=True)


def _parse_reply(name: str, raw: object) -> Reply:
    try:
        read = _PageReply.model_validate(raw)
    except ValidationError:
        raise Unreadable(
            f"The answer {name!r} of the page is not as its script sends it."
        ) from None
    headers = {
        key.lower(): value[:_MAX_HEADER_LENGTH] for key, value in read.headers.items()
    }
    parts = tuple(Part(at, text) for at, text in read.parts)
    return Reply(read.status, headers, parts, read.seconds, read.failure)


# -- what a server said -------------------------------------------------------------


def read_stream(reply: Reply) -> Stream:
    """Return what the stream of a probe has said, and when."""
    report, ticks, ended, unfinished = None, [], False, ""
    for part in reply.parts:
        *events, unfinished = (unfinished + part.text).split("\n\n")
        for value in map(_parse_event, events):
            report = report or _parse_report(value)
            if "tick" in value:
                ticks.append(part.at)
            ended = ended or "end" in value
    return Stream(report, tuple(ticks), ended)


def read_report(reply: Reply) -> Report | None:
    """Return a server's report of a probe; None if it sent none."""
    if reply.headers.get("content-type", "").startswith("text/event-stream"):
        return read_stream(reply).report
    return _parse_report(_parse_object(reply.text))


def messages_of(reply: Reply) -> list[JsonObject]:
    """Return the JSON objects of an answer, whole or in events."""
    if reply.headers.get("content-type", "").startswith("text/event-stream"):
        return [_parse_event(each) for each in reply.text.split("\n\n")]
    return [_parse_object(reply.text)]


def is_busy_reply(reply: Reply) -> bool:
    """Whether the server had too many probes at that moment."""
    return _parse_object(reply.text).get("busy") is True


def is_message(reply: Reply) -> bool:
    """Whether an answer is from an MCP server that does not know probes."""
    bearer = reply.headers.get("www-authenticate", "").startswith("Bearer")
    return bearer or _parse_object(reply.text).get("jsonrpc") == "2.0"


def host_of_netloc(netloc: str) -> str:
    """Return a host without its port, in lower case; "" if the text is no host."""
    try:
        return urlsplit(f"//{netloc}").hostname or ""
    except ValueError:
        return ""


def port_of_netloc(netloc: str, *, secure: bool) -> int | None:
    """Return the port that a Host means; None if the text is no host."""
    try:
        return urlsplit(f"//{netloc}").port or (443 if secure else 80)
    except ValueError:
        return None


def _parse_report(value: JsonObject) -> Report | None:
    """Read a report; None if it is not one of this release."""
    if value.get("mcp_probe") != 1 or "probe" not in value:
        return None
    try:
        process, database = int(value["clock_ms"]), value["database_ms"]
        clocks = [process, process if database is None else int(database)]
        if not all(0 <= clock <= _LAST_MS for clock in clocks):
            return None
        return Report(
            host=str(value["host"]),
            scheme=str(value["scheme"]),
            forwarded={str(k): str(v) for k, v in value["forwarded"].items()},
            headers={name: str(value["headers"][name]) for name in PROBE_HEADERS},
            body=int(value["body"]),
            process=str(value["process"]),
            interface=str(value["interface"]),
            clock_ms=process,
            database_ms=None if database is None else clocks[1],
        )
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return None


def _parse_event(text: str) -> JsonObject:
    # The first five characters are `data:`.
    lines = [each[5:] for each in text.splitlines() if each.startswith("data:")]
    return _parse_object("".join(lines))


def _parse_object(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
