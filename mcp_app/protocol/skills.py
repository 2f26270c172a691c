"""Skills: their rules, SKILL.md, and what clients get of them (SEP-2640).

The format is that of agentskills.io: SKILL.md in a folder begins with frontmatter in
YAML, which hosts read by the core schema of YAML 1.2.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from mimetypes import MimeTypes
from typing import Any, Final
from urllib.parse import quote

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.content import ResourceContents
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.yaml_scalars import plain_scalar

EXTENSION: Final = "io.modelcontextprotocol/skills"
SKILL_FILE: Final = "SKILL.md"
MARKDOWN: Final = "text/markdown"
MAX_FILES: Final = 512
MAX_DESCRIPTION_LENGTH: Final = 1_024
MAX_PATH_LENGTH: Final = 255

_NAME: Final = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(-[a-z0-9]+)*")
_URI: Final = re.compile(
    r"(skill://(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]*/)*([^/]*))/SKILL\.md"
)
_FENCED: Final = re.compile(r"\ufeff?---\n(.*?)^---[\t ]*$", re.DOTALL | re.MULTILINE)
_ESCAPED: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What not all readers of YAML take as it is."""
_SAFE: Final = "/!$&'()*+,;=:@"
_PLAIN_KEYS: Final = "name description license compatibility metadata allowed-tools"
_NUMBER: Final = re.compile(
    r"[-+]?(\.(inf|Inf|INF)|(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)"
    r"|\.(nan|NaN|NAN)|0o[0-7]+|0x[0-9a-fA-F]+"
)


class SkillError(ValueError):
    """Clients could not use a skill; `field` is what is wrong of it.

    That is "name", "description", "uri" or "config": its files, or other frontmatter.
    """

    def __init__(self, message: str, field: str = "config") -> None:
        super().__init__(message)
        self.field = field


class Skill:
    """A skill that is served; it never changes.

    `uri` is the address of SKILL.md; `files` has the bytes and the media type ("" if
    the name says it) of each file by path, with SKILL.md, which has the frontmatter.
    Raises `SkillError`, which says what to do.
    """

    def __init__(
        self, uri: str, frontmatter: JsonObject, files: Mapping[str, tuple[bytes, str]]
    ) -> None:
        _check_frontmatter(frontmatter)
        match = _URI.fullmatch(uri)
        if match is None or match[2] != frontmatter["name"]:
            raise SkillError(
                f"The address of this skill is {uri[:200]!r}. It must be"
                f" skill://…/{frontmatter['name']}/SKILL.md, and between the slashes"
                " only letters A-Z and a-z, digits and - _ . ~ are allowed.",
                "uri",
            )
        check_paths(files)
        self.uri: Final = uri
        root = match[1]
        self.size: Final = sum(len(content) for content, _ in files.values())
        self.paths: Final[dict[str, str]] = {}
        """The path of each file by its address."""
        self._contents: dict[str, ResourceContents] = {}
        self._folders: dict[str, dict[str, JsonObject]] = {root: {}}
        resources = []
        for path in sorted(files, key=lambda path: (path != SKILL_FILE, path)):
            address, file = f"{root}/{quote(path, safe=_SAFE)}", files[path][0]
            contents = _file_contents(address, path, *files[path])
            self.paths[address], self._contents[path] = path, contents
            digest, size = f"sha256:{sha256(file).hexdigest()}", len(file)
            resources.append({"uri": address, "digest": digest, "size": size})
            members = {"mimeType": contents.mime_type, "size": size}
            self._add_child(address, path, members)
        self.entry: Final[JsonObject] = {
            "uri": uri,
            "frontmatter": frontmatter,
            "resources": resources,
        }
        """What `skills/list` and `skills/get` show ("Skill Entries")."""

    def _add_child(self, uri: str, path: str, members: JsonObject) -> None:
        folder, _, name = path.rpartition("/")
        parent = uri.rpartition("/")[0]
        siblings = self._folders.setdefault(parent, {})
        siblings[uri] = {"uri": uri, "name": name, **members}
        if folder:
            self._add_child(parent, folder, {"mimeType": "inode/directory"})

    def read(self, path: str = SKILL_FILE) -> ResourceContents:
        """Return a file, as text if it is one."""
        return self._contents[path]

    def children(self, folder: str) -> Sequence[JsonObject] | None:
        """Return the `Resource`s in a folder, by its address; None if it is none."""
        children = self._folders.get(folder)
        return None if children is None else [*children.values()]


def _file_contents(
    uri: str, path: str, content: bytes, media_type: str
) -> ResourceContents:
    guess = MARKDOWN if path.endswith(".md") else MimeTypes().guess_type(path)[0]
    media_type = media_type or guess or ""
    text = _text_of(content)
    if text is None:
        media_type = media_type or "application/octet-stream"
        return ResourceContents(uri=uri, blob=content, mime_type=media_type)
    return ResourceContents(uri=uri, text=text, mime_type=media_type or "text/plain")


def _text_of(content: bytes) -> str | None:
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None


def check_paths(paths: Collection[str]) -> None:
    """Raise `SkillError` for paths that the files of one skill cannot have."""
    if len(paths) > MAX_FILES:
        message = f"A skill has at most {MAX_FILES} files; this one has {len(paths)}."
        raise SkillError(message)
    for path in paths:
        usual = path.isprintable() and len(path) <= MAX_PATH_LENGTH
        if not usual or "\\" in path or {"", ".", ".."} & {*path.split("/")}:
            raise SkillError(
                f"{path[:80]!r} cannot be the path of a file. Write folder/file.md, in"
                f" at most {MAX_PATH_LENGTH} characters, without a backslash; no part"
                " may be empty, . or .."
            )
    folders = {path[: at.start()] for path in paths for at in re.finditer("/", path)}
    for name, count in Counter(map(str.casefold, (*paths, *folders))).items():
        if count > 1:
            message = "Names must differ in more than capital letters."
            raise SkillError(f"{name[:80]!r} is there more than once. {message}")


# -- frontmatter -----------------------------------------------------------------------


def _check_frontmatter(frontmatter: JsonObject) -> None:
    name, words = frontmatter.get("name"), frontmatter.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SkillError(
            f"{str(name)[:80]!r} cannot be the name of a skill: only letters a-z,"
            " digits and single hyphens inside are allowed, at most 64 in all.",
            "name",
        )
    if not isinstance(words, str) or not 0 < len(words.strip()) <= len(words) <= (
        MAX_DESCRIPTION_LENGTH
    ):
        raise SkillError(
            "The description of a skill must say when to use it, in at most"
            f" {MAX_DESCRIPTION_LENGTH} characters.",
            "description",
        )
    jsonrpc.write(frontmatter)


def render_skill_file(frontmatter: JsonObject, body: str) -> bytes:
    """Return a SKILL.md whose frontmatter all readers of YAML read alike."""
    lines = [
        f"{key if key in _PLAIN_KEYS.split() else _json(key)}: {_json(value)}\n"
        for key, value in frontmatter.items()
    ]
    return f"---\n{''.join(lines)}---\n\n{body}".encode()


def _json(value: object) -> str:
    text = jsonrpc.write(value).decode()
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def read_frontmatter(content: bytes) -> JsonObject:
    """Return the frontmatter of a SKILL.md, not checked by the rules for skills.

    Raises ValueError with the line and the remedy; ImportError without PyYAML.
    """
    import yaml  # noqa: PLC0415 - an extra

    text = _text_of(content)
    fenced = None if text is None else _FENCED.match(text.replace("\r\n", "\n"))
    if fenced is None:
        raise ValueError(
            "Line 1: SKILL.md must begin with a line ---, then name and description,"
            " then another line ---, all in UTF-8."
        )
    try:
        events = [*yaml.parse(fenced[1], Loader=yaml.SafeLoader)]
        is_one = sum(type(each).__name__ == "DocumentEndEvent" for each in events) == 1
        value = _read_node(events[2], iter(events[3:])) if is_one else None
    except (yaml.YAMLError, RecursionError) as error:
        problem = getattr(error, "problem", None) or error
        message = f"{problem}. Put texts with special characters in quotes."
        raise _line_error(getattr(error, "problem_mark", None), message) from None
    if not isinstance(value, dict):
        raise _line_error(None, "Write the fields here as “name: value”.")
    return value


def _read_node(event: Any, events: Iterator[Any]) -> Any:
    """Return what an event of PyYAML's parser begins."""
    kind = type(event).__name__
    if kind == "AliasEvent" or event.anchor or event.tag:
        message = "Anchors, aliases and tags are not allowed. Write the value out."
        raise _line_error(event.start_mark, message)
    if kind == "ScalarEvent":
        return _read_scalar(event) if event.implicit[0] else event.value
    items: list[Any] = []
    fields: JsonObject = {}
    while not type(event := next(events)).__name__.endswith("EndEvent"):
        value = _read_node(event, events)
        if kind == "SequenceStartEvent":
            items.append(value)
        elif not isinstance(value, str) or value in fields:
            message = f"The name {value!r:.40} must be a text, and be there only once."
            raise _line_error(event.start_mark, message)
        else:
            fields[value] = _read_node(next(events), events)
    return items if kind == "SequenceStartEvent" else fields


def _read_scalar(event: Any) -> object:
    value = plain_scalar(event.value)
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        message = f"{value:.40} is no number that all programs read. Put it in quotes."
        raise _line_error(event.start_mark, message)
    return value


def _line_error(mark: Any, problem: str) -> ValueError:
    # The first line of the YAML is the second of the file.
    return ValueError(f"Line {2 if mark is None else mark.line + 2}: {problem}")
