"""The formats in which clients of MCP read their servers: files, lines, programs."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import quote, urlencode, urlsplit

from mcp_app.protocol.headers import is_loopback_host

if TYPE_CHECKING:
    from mcp_app.interface.definitions import Label
    from mcp_app.protocol.json_types import JsonObject


# -- json merging ----------------------------------------------------------------------
# Add a member to a JSON file of somebody else. The other bytes stay the same.

Value: TypeAlias = "Mapping[str, Any] | list[Any]"

_SPACE: Final = re.compile(r"[ \t\r\n]*")


class NotMerged(Exception):
    """The file has other content than expected; it stays unchanged."""


def json_text(document: JsonObject) -> str:
    """Return the text of a file with this content alone."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def merge_member(text: str, root: str, name: str, value: JsonObject) -> str:
    """Return a file's text with this member set in the object `root`.

    Raises `NotMerged` if it is no JSON object, or has comments.
    """
    document = _read_document(text)
    if not document:
        return json_text({root: {name: value}})
    if root not in document:
        return _with_member(text, text.index("{"), root, {name: value})
    if not isinstance(document[root], dict):
        raise NotMerged(f"its member {root!r} is no object")
    start = _member_positions(text, text.index("{"))[root].value_start
    return _with_member(text, start, name, value)


def merge_item(text: str, name: str, item: JsonObject) -> str:
    """Return a file's text with this item in its list `name`, if its `id` is new.

    The file has members already. Raises `NotMerged` as `merge_member` does.
    """
    items = _read_document(text).get(name, [])
    if not isinstance(items, list):
        raise NotMerged(f"its member {name!r} is no list")
    if item["id"] in [each.get("id") for each in items if isinstance(each, dict)]:
        return text
    if not items:
        return _with_member(text, text.index("{"), name, [item])
    member = _member_positions(text, text.index("{"))[name]
    start = member.value_start + 1
    space = text[start : _after_space(text, start)]
    # The item goes behind the last one, before the space and the `]`.
    before = text[: member.value_end - 1].rstrip()
    written = _spread_json(item, space, _indentation(text))
    return f"{before},{space or ' '}{written}{text[len(before) :]}"


@dataclass(frozen=True, slots=True)
class Member:
    """The positions of an object's member in a text; `space` is the space before it.

    `value_end` is the position after its value.
    """

    space: str
    name_start: int
    value_start: int
    value_end: int


def _read_document(text: str) -> JsonObject:
    try:
        document = json.loads(text) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise NotMerged(f"it is not plain JSON (line {error.lineno})") from None
    except (RecursionError, ValueError):
        raise NotMerged(
            "it is nested too deeply, or has a number that is too long"
        ) from None
    if not isinstance(document, dict):
        raise NotMerged("it has no JSON object")
    return document


def _member_positions(text: str, start: int) -> dict[str, Member]:
    """Return the positions of the members of the object that begins at `start`.

    The text must be JSON. Raises `NotMerged` if a name occurs twice.
    """
    decoder, members, position = json.JSONDecoder(), dict[str, Member](), start + 1
    while text[begin := _after_space(text, position)] != "}":
        name, colon = decoder.raw_decode(text, begin)
        value = _after_space(text, _after_space(text, colon) + 1)
        _, end = decoder.raw_decode(text, value)
        if name in members:
            raise NotMerged(f"it has the member {name!r} twice")
        members[name] = Member(text[position:begin], begin, value, end)
        position = _after_space(text, end)
        # Skip a comma: the comparison counts as 1 or 0.
        position += text[position] == ","
    return members


def _after_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return start if match is None else match.end()


def _with_member(text: str, start: int, name: str, value: Value) -> str:
    """Return a text with this member set in the object that begins at `start`."""
    members, indent = _member_positions(text, start), _indentation(text)
    if name in members:
        old = members[name]
        written = _spread_json(value, old.space, indent)
        return f"{text[: old.value_start]}{written}{text[old.value_end :]}"
    if members:
        last = list(members.values())[-1]
        space, after = last.space, text[last.value_end :]
        before = f"{text[: last.value_end]},{space or ' '}"
    else:
        newline = outer_indent = ""
        if indent is not None:
            newline = "\r\n" if "\r\n" in text else "\n"
            line = text[:start].rpartition("\n")[2]
            outer_indent = line[: len(line) - len(line.lstrip())]
        space = f"{newline}{outer_indent}{indent or ''}"
        end = text.index("}", start)
        before = f"{text[: start + 1]}{space}"
        after = f"{newline}{outer_indent}{text[end:]}"
    written = json.dumps(name, ensure_ascii=False)
    return f"{before}{written}: {_spread_json(value, space, indent)}{after}"


def _spread_json(value: Value, space: str, indent: str | None) -> str:
    """Return a value as JSON, in indented lines if the text around it is."""
    if indent is None or "\n" not in space:
        return json.dumps(value, ensure_ascii=False)
    written = json.dumps(value, indent=indent, ensure_ascii=False)
    # Use only the last line of `space`: no empty lines within a value.
    newline = "\r\n" if "\r\n" in space else "\n"
    return written.replace("\n", newline + space.rpartition("\n")[2])


def _indentation(text: str) -> str | None:
    """Return the indentation of a file; None if it is one line."""
    first = next(iter(_member_positions(text, text.index("{")).values()), None)
    if first is None or "\n" not in first.space:
        return None
    return first.space.rpartition("\n")[2]


# -- client formats --------------------------------------------------------------------

TOKEN: Final = "YOUR-TOKEN"  # noqa: S105 - it stands for one
"""The placeholder for a token."""

BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
"""A key that needs no quotes in TOML."""

Writer: TypeAlias = Callable[[str, str, str], str]
"""Writes a text for the name and URL of a server, and a token ("" for none)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The command with which a client starts a server."""

    command: str
    arguments: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProgram:
    """One client: the steps to connect it, and the text that it reads.

    `steps` are sentences in their order, followed by `token_steps` if a token is
    needed.  `check` says how people see in the client that it is connected.  In all of
    these, `%(name)s` is the server's name there, and `%(place)s` where the text goes.
    `verified` is the year and month of the last check with the client or its
    documentation.  `write` writes the text for HTTP.  `file` is relative to a project,
    "" if the client reads none there; then `elsewhere` tells people the place.  `line`
    adds the server in a terminal.  If `signs_in`, the client takes no token.
    """

    title: str
    steps: Sequence[Label]
    check: Label
    verified: tuple[int, int]
    token_steps: Sequence[Label] = ()
    file: str = ""
    elsewhere: Label = ""
    signs_in: bool = False
    write: Writer = lambda _name, url, _token: f"{url}\n"
    line: Writer | None = None
    link: Writer | None = None
    """Writes a link that opens the client; its token is `TOKEN` or ""."""

    @property
    def place_for_people(self) -> str:
        """Where the text goes, for people."""
        return self.file or str(self.elsewhere)

    @property
    def month_checked(self) -> date:
        """The first day of the month `verified`."""
        return date(*self.verified, 1)

    def http_text(self, name: str, url: str, *, token: str = "") -> str:
        """Return the text with which the client uses a server at a URL.

        Pass `TOKEN` for a placeholder that the reader replaces.
        """
        return self.write(name, url, token)

    def stdio_text(self, name: str, launch: Launch) -> str:
        """Return the text to start a server, "" if the client starts none."""
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonClient(ClientProgram):
    """A client with a JSON file, whose member `root` maps names to servers.

    `stdio` and `http` are the first members of an entry, and `url` is the name of the
    address member.  `bridge` is a command that speaks HTTP for a client that cannot
    send headers itself; the address follows.  If `asks`, the client asks for the
    token, so no file has it.
    """

    root: str = "mcpServers"
    stdio: Mapping[str, str] = field(default_factory=dict)
    http: Mapping[str, str] = field(default_factory=dict)
    url: str = "url"
    bridge: Sequence[str] = ()
    asks: bool = False

    def stdio_entry(self, launch: Launch) -> JsonObject:
        """Return the entry of a server that the client starts itself."""
        command = {"command": launch.command, "args": list(launch.arguments)}
        return {**self.stdio, **command}

    def http_entry(self, name: str, url: str, *, token: str = "") -> JsonObject:
        """Return the entry of a server at a URL, with a header if there is a token."""
        header = f"Bearer {token}"
        if token and self.asks:
            header = f"Bearer ${{input:{token_question(name)['id']}}}"
        if not self.bridge:
            headed = {"headers": {"Authorization": header}} if token else {}
            return {**self.http, self.url: url, **headed}
        command, *arguments = self.bridge
        parts = urlsplit(url)
        is_plain = parts.scheme == "http" and not is_loopback_host(parts.hostname)
        arguments += [url, *(["--allow-http"] if is_plain else [])]
        if not token:
            return {"command": command, "args": arguments}
        # The header is in the environment: on Windows a client passes no argument with
        # a space, and other people on the computer may see arguments.
        arguments += ["--header", "Authorization:${AUTH_HEADER}"]
        return {"command": command, "args": arguments, "env": {"AUTH_HEADER": header}}

    def http_text(self, name: str, url: str, *, token: str = "") -> str:
        """Return the text of a file that contains only this server."""
        questions = {"inputs": [token_question(name)]} if token and self.asks else {}
        entry = self.http_entry(name, url, token=token)
        return json_text({**questions, self.root: {name: entry}})

    def stdio_text(self, name: str, launch: Launch) -> str:
        """Return the text of a file that contains only this server."""
        return json_text({self.root: {name: self.stdio_entry(launch)}})

    def merge_entry(self, text: str, name: str, entry: JsonObject) -> str:
        """Return the text of a file with this server added and the rest unchanged.

        Raises `NotMerged` if it is no JSON object, or has comments.
        """
        merged = merge_member(text, self.root, name, entry)
        # Only if the client asks for a token, there are headers with the question's id.
        if token_question(name)["id"] in json.dumps(entry.get("headers")):
            return merge_item(merged, "inputs", token_question(name))
        return merged


@dataclass(frozen=True, slots=True, kw_only=True)
class TomlClient(ClientProgram):
    """A client with a TOML file, whose table `root` has a table for each server."""

    root: str

    def http_text(self, name: str, url: str, *, token: str = "") -> str:
        """Return the table of a server at a URL, with a header if there is a token."""
        members = {"url": quoted_literal(url)}
        if token:
            header = quoted_literal(f"Bearer {token}")
            members["http_headers"] = f"{{ Authorization = {header} }}"
        return self._server_table(name, members)

    def stdio_text(self, name: str, launch: Launch) -> str:
        """Return the table of a server that the client starts itself."""
        arguments = ", ".join(map(quoted_literal, launch.arguments))
        members = {"command": quoted_literal(launch.command), "args": f"[{arguments}]"}
        return self._server_table(name, members)

    def _server_table(self, name: str, members: Mapping[str, str]) -> str:
        key = name if BARE.fullmatch(name) else quoted_literal(name)
        lines = [f"[{self.root}.{key}]"]
        lines += [f"{member} = {value}" for member, value in members.items()]
        return "\n".join(lines) + "\n"


def token_question(name: str) -> JsonObject:
    """Return the input with which VS Code asks for a server's token, hidden."""
    return {
        "type": "promptString",
        "id": f"{name}-token",
        "description": f"Access token of {name}",
        "password": True,
    }


def cursor_link(name: str, url: str, token: str) -> str:
    """Return the link by which Cursor asks whether to add a server."""
    headers = {"headers": {"Authorization": f"Bearer {token}"}} if token else {}
    config = json.dumps({"url": url, **headers}).encode()
    values = {"name": name, "config": base64.b64encode(config).decode()}
    query = urlencode(values, quote_via=quote)
    return f"cursor://anysphere.cursor-deeplink/mcp/install?{query}"


def vscode_link(name: str, url: str, token: str) -> str:
    """Return the link by which VS Code asks whether to add a server, and its token."""
    values: dict[str, Any] = {"name": name, "type": "http", "url": url}
    if token:
        secret_input = token_question(name)
        values["headers"] = {"Authorization": f"Bearer ${{input:{secret_input['id']}}}"}
        values["inputs"] = [secret_input]
    return f"vscode:mcp/install?{quote(json.dumps(values), safe='')}"


def quoted_literal(text: str) -> str:
    """Return a text as Python, JavaScript and TOML write it, in double quotes."""
    # No `\u` escapes: not all of these languages join surrogate pairs.
    return json.dumps(text, ensure_ascii=False)
