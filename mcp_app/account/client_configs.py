"""Configurations for known MCP clients: one table, and the code that writes them.

Each client reads a JSON file, in the project or in the home folder, whose member `root`
maps names to servers. The formats are those of the clients' documentation in November
2026.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mcp_app.protocol.json_types import JsonObject

TOKEN: Final = "YOUR-TOKEN"  # noqa: S105 - it stands for one
"""The placeholder for a token."""


INDENT: Final = "  "
_SPACE: Final = re.compile(r"[ \t\r\n]*")


class NotMerged(Exception):
    """The file has other content than expected; it stays unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The command with which a client starts a server."""

    command: str
    arguments: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProgram:
    """One client: where it reads its servers, and in which format.

    `file` is relative to the project, "" if the client reads none there; `elsewhere`
    is for people. `stdio` and `http` are the first members of an entry, and `url` is
    the name of the address member. `bridge` is the command, to be followed by the
    address, that speaks HTTP for a client that cannot send headers itself.
    """

    title: str
    file: str = ""
    elsewhere: str = ""
    root: str = "mcpServers"
    stdio: Mapping[str, str] = field(default_factory=dict)
    http: Mapping[str, str] = field(default_factory=dict)
    url: str = "url"
    bridge: Sequence[str] = ()

    def on_stdio(self, launch: Launch) -> JsonObject:
        """Return the entry of a server that the client starts itself."""
        started = {"command": launch.command, "args": list(launch.arguments)}
        return {**self.stdio, **started}

    def over_http(self, url: str, *, token: str = "") -> JsonObject:
        """Return the entry of a server at a URL, with a header if there is a token.

        Pass `TOKEN` for a placeholder that the reader replaces.
        """
        header = f"Bearer {token}"
        if self.bridge:
            command, *arguments = self.bridge
            headers = ["--header", f"Authorization: {header}"] if token else []
            return {"command": command, "args": [*arguments, url, *headers]}
        headed = {"headers": {"Authorization": header}} if token else {}
        return {**self.http, self.url: url, **headed}

    def document(self, name: str, entry: JsonObject) -> str:
        """Return the text of a file that contains only this server."""
        return _written({self.root: {name: entry}})

    def merged(self, text: str, name: str, entry: JsonObject) -> str:
        """Return the text of a file with this server added and the rest unchanged.

        Raises `NotMerged` if it is no JSON object, or has comments.
        """
        document = _read(text)
        if not document:
            return self.document(name, entry)
        if self.root not in document:
            return _with_member(text, text.index("{"), self.root, {name: entry})
        if not isinstance(document[self.root], dict):
            raise NotMerged(f"its member {self.root!r} is no object")
        servers = _members(text, text.index("{"))[self.root]
        return _with_member(text, servers.value, name, entry)


def command_line(name: str, url: str, token: str) -> str:
    """Return the command that adds a server at a URL to Claude Code."""
    line = shlex.join(["claude", "mcp", "add", "--transport", "http", name, url])
    # Double quotes also work on Windows; no token contains one.
    return f'{line} --header "Authorization: Bearer {token}"' if token else line


def _written(document: JsonObject) -> str:
    return json.dumps(document, indent=INDENT, ensure_ascii=False) + "\n"


# -- merging into others' files: what is not ours stays the same, byte by byte -------


@dataclass(frozen=True, slots=True)
class Member:
    """The position of an object's member in a text: its name, and its value to `end`.

    `space` is the whitespace before it.
    """

    space: str
    begin: int
    value: int
    end: int


def _read(text: str) -> JsonObject:
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


def _members(text: str, start: int) -> dict[str, Member]:
    """Return the positions of the members of the object that begins at `start`.

    The text must be JSON. Raises `NotMerged` if a name occurs twice.
    """
    decoder, found, place = json.JSONDecoder(), dict[str, Member](), start + 1
    while text[begin := _after_space(text, place)] != "}":
        name, colon = decoder.raw_decode(text, begin)
        value = _after_space(text, _after_space(text, colon) + 1)
        _, end = decoder.raw_decode(text, value)
        if name in found:
            raise NotMerged(f"it has the member {name!r} twice")
        found[name] = Member(text[place:begin], begin, value, end)
        place = _after_space(text, end)
        place += text[place] == ","
    return found


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return place if found is None else found.end()


def _with_member(text: str, start: int, name: str, value: JsonObject) -> str:
    """Return the text with this member set in the object that begins at `start`."""
    members, unit = _members(text, start), _unit(text)
    if name in members:
        old = members[name]
        return text[: old.value] + _spread(value, old.space, unit) + text[old.end :]
    if members:
        last = list(members.values())[-1]
        place, space, rest = last.end, last.space, text[last.end :]
        before = f"{text[:place]},{space if space else ' '}"
    else:
        outer = text[:start].rpartition("\n")[2]
        outer = outer[: len(outer) - len(outer.lstrip())]
        line = _line_end(text) if unit is not None else ""
        space = f"{line}{outer}{unit or ''}"
        end = text.index("}", start)
        before = f"{text[: start + 1]}{space}"
        rest = f"{line}{outer if line else ''}{text[end:]}"
    written = json.dumps(name, ensure_ascii=False)
    return f"{before}{written}: {_spread(value, space, unit)}{rest}"


def _spread(value: JsonObject, space: str, unit: str | None) -> str:
    """Return a value as JSON, in indented lines if the text around it is."""
    if unit is None or "\n" not in space:
        return json.dumps(value, ensure_ascii=False)
    written = json.dumps(value, indent=unit, ensure_ascii=False)
    # Use only the last line of `space`: no empty lines within a value.
    return written.replace("\n", "\n" + space.rpartition("\n")[2]).replace(
        "\n", "\r\n" if "\r\n" in space else "\n"
    )


def _unit(text: str) -> str | None:
    """Return the indentation of a file; None if it is one line."""
    first = next(iter(_members(text, text.index("{")).values()), None)
    if first is None or "\n" not in first.space:
        return None
    return first.space.rpartition("\n")[2]


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


CLIENTS: Final[Mapping[str, ClientProgram]] = {
    "claude-desktop": ClientProgram(
        title="Claude Desktop",
        elsewhere="claude_desktop_config.json (Settings, Developer, Edit Config)",
        bridge=("npx", "-y", "mcp-remote"),
    ),
    "claude-code": ClientProgram(
        title="Claude Code",
        file=".mcp.json",
        stdio={"type": "stdio"},
        http={"type": "http"},
    ),
    "cursor": ClientProgram(title="Cursor", file=".cursor/mcp.json"),
    "vscode": ClientProgram(
        title="VS Code",
        file=".vscode/mcp.json",
        root="servers",
        stdio={"type": "stdio"},
        http={"type": "http"},
    ),
    "gemini": ClientProgram(
        title="Gemini CLI", file=".gemini/settings.json", url="httpUrl"
    ),
    "zed": ClientProgram(
        title="Zed", file=".zed/settings.json", root="context_servers"
    ),
    "windsurf": ClientProgram(
        title="Windsurf",
        elsewhere="~/.codeium/windsurf/mcp_config.json",
        url="serverUrl",
    ),
}
"""The clients, by their names on the command line."""
