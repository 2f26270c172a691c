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

from mcp_app.account import json_merging
from mcp_app.protocol.loopback import is_loopback_host

if TYPE_CHECKING:
    from mcp_app.interface.labels import Label
    from mcp_app.protocol.json_types import JsonObject

TOKEN: Final = "YOUR-TOKEN"  # noqa: S105 - it stands for one
"""The placeholder for a token."""

BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
"""Keys that TOML has without quotes."""

Writer: TypeAlias = Callable[[str, str, str], str]
"""Writes a text for the name and URL of a server, and a token ("" for none)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The command with which a client starts a server."""

    command: str
    arguments: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProgram:
    """One client: what people do to connect it, and the text that it reads.

    `steps` are sentences in their order, followed by `token_steps` if a token is
    needed; `check` says how people see in the client that it is connected.  In all of
    these `%(name)s` is the server's name there, and `%(place)s` where the text goes.
    `verified` is when all this was last held against the client or its documentation
    (year, month).  `write` writes what it reads over HTTP.  `file` is relative to a
    project, "" if the client reads none there; `elsewhere` is for people.  `line` adds
    the server in a terminal.  One that only `signs_in` takes no token.
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
    """Writes a link that opens the client; it is given no token but `TOKEN`."""

    @property
    def place(self) -> str:
        """Where the text goes, for people."""
        return self.file or str(self.elsewhere)

    @property
    def month(self) -> date:
        """The first day of the month in which it was last checked."""
        return date(*self.verified, 1)

    def text(self, name: str, url: str, *, token: str = "") -> str:
        """Return what the client reads to use a server at a URL.

        Pass `TOKEN` for a placeholder that the reader replaces.
        """
        return self.write(name, url, token)

    def stdio_text(self, name: str, launch: Launch) -> str:
        """Return what it reads to start a server itself, "" if it starts none."""
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonClient(ClientProgram):
    """A client with a JSON file, whose member `root` maps names to servers.

    `stdio` and `http` are the first members of an entry, and `url` is the name of the
    address member.  `bridge` is the command, to be followed by the address, that
    speaks HTTP for a client that cannot send headers itself.  One that `asks` has the
    person type the token, which then is in no file.
    """

    root: str = "mcpServers"
    stdio: Mapping[str, str] = field(default_factory=dict)
    http: Mapping[str, str] = field(default_factory=dict)
    url: str = "url"
    bridge: Sequence[str] = ()
    asks: bool = False

    def on_stdio(self, launch: Launch) -> JsonObject:
        """Return the entry of a server that the client starts itself."""
        command = {"command": launch.command, "args": list(launch.arguments)}
        return {**self.stdio, **command}

    def over_http(self, name: str, url: str, *, token: str = "") -> JsonObject:
        """Return the entry of a server at a URL, with a header if there is a token."""
        header = f"Bearer {token}"
        if token and self.asks:
            header = f"Bearer ${{input:{question(name)['id']}}}"
        if self.bridge:
            return self._bridged(url, header if token else "")
        headed = {"headers": {"Authorization": header}} if token else {}
        return {**self.http, self.url: url, **headed}

    def _bridged(self, url: str, header: str) -> JsonObject:
        """Return the entry of a server to which the bridge speaks."""
        command, *arguments = self.bridge
        parts = urlsplit(url)
        is_plain = parts.scheme == "http" and not is_loopback_host(parts.hostname)
        arguments += [url, *(["--allow-http"] if is_plain else [])]
        if not header:
            return {"command": command, "args": arguments}
        # On Windows its client hands on no argument with a space, and everywhere
        # other people on the computer may see arguments, but no environment.
        arguments += ["--header", "Authorization:${AUTH_HEADER}"]
        return {"command": command, "args": arguments, "env": {"AUTH_HEADER": header}}

    def text(self, name: str, url: str, *, token: str = "") -> str:
        """Return the text of a file that contains only this server."""
        questions = {"inputs": [question(name)]} if token and self.asks else {}
        entry = self.over_http(name, url, token=token)
        return json_merging.json_text({**questions, self.root: {name: entry}})

    def stdio_text(self, name: str, launch: Launch) -> str:
        """Return the text of a file that contains only this server."""
        return json_merging.json_text({self.root: {name: self.on_stdio(launch)}})

    def merge(self, text: str, name: str, entry: JsonObject) -> str:
        """Return the text of a file with this server added and the rest unchanged.

        Raises `NotMerged` if it is no JSON object, or has comments.
        """
        merged = json_merging.merge_member(text, self.root, name, entry)
        if question(name)["id"] in json.dumps(entry.get("headers")):
            return json_merging.merge_item(merged, "inputs", question(name))
        return merged


@dataclass(frozen=True, slots=True, kw_only=True)
class TomlClient(ClientProgram):
    """A client with a TOML file, whose table `root` has a table for each server."""

    root: str

    def text(self, name: str, url: str, *, token: str = "") -> str:
        """Return the table of a server at a URL, with a header if there is a token."""
        header = f"{{ Authorization = {literal(f'Bearer {token}')} }}"
        members = {"url": literal(url), **({"http_headers": header} if token else {})}
        return self._table(name, members)

    def stdio_text(self, name: str, launch: Launch) -> str:
        """Return the table of a server that the client starts itself."""
        arguments = ", ".join(map(literal, launch.arguments))
        members = {"command": literal(launch.command), "args": f"[{arguments}]"}
        return self._table(name, members)

    def _table(self, name: str, members: Mapping[str, str]) -> str:
        key = name if BARE.fullmatch(name) else literal(name)
        lines = [f"[{self.root}.{key}]"]
        lines += [f"{member} = {value}" for member, value in members.items()]
        return "\n".join(lines) + "\n"


def question(name: str) -> JsonObject:
    """Return what lets VS Code ask for the token of a server, hidden while typed."""
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
    given = {"name": name, "config": base64.b64encode(config).decode()}
    query = urlencode(given, quote_via=quote)
    return f"cursor://anysphere.cursor-deeplink/mcp/install?{query}"


def vscode_link(name: str, url: str, token: str) -> str:
    """Return the link by which VS Code asks whether to add a server, and its token."""
    given: dict[str, Any] = {"name": name, "type": "http", "url": url}
    if token:
        asked = question(name)
        given["headers"] = {"Authorization": f"Bearer ${{input:{asked['id']}}}"}
        given["inputs"] = [asked]
    return f"vscode:mcp/install?{quote(json.dumps(given), safe='')}"


def literal(text: str) -> str:
    """Return a text as Python, JavaScript and TOML write it, in double quotes."""
    # None of them reads each half of a pair of surrogates by itself.
    return json.dumps(text, ensure_ascii=False)
