"""Skills: their rules, SKILL.md, and their form for clients (SEP-2640).

The format is that of agentskills.io: SKILL.md in a folder begins with frontmatter in
YAML, which hosts read by the core schema of YAML 1.2.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from mimetypes import MimeTypes
from typing import Final
from urllib.parse import quote, unquote

from mcp_app.protocol.content import ResourceContents
from mcp_app.protocol.frontmatter import TEXT_FIELDS, text_of
from mcp_app.protocol.json_types import JsonObject

EXTENSION: Final = "io.modelcontextprotocol/skills"
SKILL_CAPABILITIES: Final = {"extensions": {EXTENSION: {"directoryRead": True}}}
SKILL_FILE: Final = "SKILL.md"
_FOLDER: Final = "inode/directory"
MARKDOWN: Final = "text/markdown"
MAX_FILES: Final = 512
MAX_DESCRIPTION_LENGTH: Final = 1_024
MAX_TEXT: Final = 500
MAX_PATH_LENGTH: Final = 255

_NAME: Final = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(-[a-z0-9]+)*")
_ROOT: Final = re.compile(r"skill://(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]*/)*([^/]*)")
_SAFE: Final = "/!$&'()*+,;=:@"


class SkillError(ValueError):
    """Clients could not use the skill; `field` is the wrong column of its row."""

    def __init__(self, message: str, field: str = "config") -> None:
        super().__init__(message)
        self.field = field


class Skill:
    """A skill that is served; it never changes.

    `uri` is the address of SKILL.md.  `files` has the bytes and the media type ("" if
    the name tells it) of each file by path, including SKILL.md with the frontmatter.
    Raises `SkillError`, whose message says what to do.
    """

    def __init__(
        self, uri: str, frontmatter: JsonObject, files: Mapping[str, tuple[bytes, str]]
    ) -> None:
        _check_frontmatter(frontmatter)
        root, name = uri.removesuffix(f"/{SKILL_FILE}"), frontmatter["name"]
        match = _ROOT.fullmatch(root)
        if match is None or match[1] != name or root == uri:
            rule = f"skill://…/{name}/{SKILL_FILE}, of A-Z, a-z, 0-9 and - _ . ~"
            message = f"{uri[:200]!r} cannot be the address of the skill: write {rule}."
            raise SkillError(message, "uri")
        check_paths(files)
        self.uri: Final = uri
        self.paths: Final[dict[str, str]] = {}
        """The path of each file by its address."""
        self._contents: dict[str, ResourceContents] = {}
        self._sizes = {path: len(file[0]) for path, file in files.items()}
        self.size: Final = sum(self._sizes.values())
        resources = []
        # SKILL.md comes first.
        for path in sorted(files, key=lambda path: (path != SKILL_FILE, path)):
            address = file_uri(root, path)
            self.paths[address] = path
            self._contents[path] = _file_contents(address, path, *files[path])
            digest = f"sha256:{sha256(files[path][0]).hexdigest()}"
            size = self._sizes[path]
            resources.append({"uri": address, "digest": digest, "size": size})
        entry = {"uri": uri, "frontmatter": frontmatter, "resources": resources}
        self.entry: Final[JsonObject] = entry
        """What `skills/list` and `skills/get` show ("Skill Entries")."""

    def read(self, path: str = SKILL_FILE) -> ResourceContents:
        """Return a file, as text if it is text."""
        return self._contents[path]

    def children(self, folder: str) -> Sequence[JsonObject]:
        """Return the `Resource`s in the folder at an address, if it is a folder."""
        entries: dict[str, JsonObject] = {}
        for address, path in self.paths.items():
            if address.startswith(f"{folder}/"):
                name, slash, _ = address[len(folder) + 1 :].partition("/")
                child = {"uri": f"{folder}/{name}", "name": unquote(name)}
                media_type = self._contents[path].mime_type
                file = {"mimeType": media_type, "size": self._sizes[path]}
                entries[name] = child | ({"mimeType": _FOLDER} if slash else file)
        return [*entries.values()]


def file_uri(root: str, path: str) -> str:
    """Return the address of a file of the skill in this folder."""
    return f"{root}/{quote(path, safe=_SAFE)}"


def _file_contents(
    uri: str, path: str, content: bytes, media_type: str
) -> ResourceContents:
    guess = MARKDOWN if path.endswith(".md") else MimeTypes().guess_type(path)[0]
    text = text_of(content)
    fallback = "application/octet-stream" if text is None else "text/plain"
    blob = content if text is None else None
    kind = media_type or guess or fallback
    return ResourceContents(uri=uri, text=text, blob=blob, mime_type=kind)


def check_paths(paths: Collection[str]) -> None:
    """Raise `SkillError` for paths that the files of one skill cannot have."""
    if len(paths) > MAX_FILES:
        message = f"A skill has at most {MAX_FILES} files; this one has {len(paths)}."
        raise SkillError(message)
    for path in paths:
        usual = path.isprintable() and len(path) <= MAX_PATH_LENGTH
        if not usual or "\\" in path or {"", ".", ".."} & {*path.split("/")}:
            rule = (
                f"at most {MAX_PATH_LENGTH} characters, no backslash, no part . or .."
            )
            message = f"Write folder/file.md, with {rule}."
            raise SkillError(f"{path[:80]!r} cannot be the path of a file. {message}")
    folders = {path[: at.start()] for path in paths for at in re.finditer("/", path)}
    for name, count in Counter(map(str.casefold, (*paths, *folders))).items():
        if count > 1:
            message = "Names must differ in more than capital letters."
            raise SkillError(f"{name[:80]!r} is there more than once. {message}")


def _check_frontmatter(frontmatter: JsonObject) -> None:
    name, description = frontmatter.get("name"), frontmatter.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        rule = "letters a-z, digits and single hyphens inside, at most 64 in all"
        message = f"{str(name)[:80]!r} cannot be the name of a skill: it has {rule}."
        raise SkillError(message, "name")
    size = (
        len(description) if isinstance(description, str) and description.strip() else 0
    )
    if not 0 < size <= MAX_DESCRIPTION_LENGTH:
        rule = f"in at most {MAX_DESCRIPTION_LENGTH} characters"
        message = f"The description of a skill must say when to use it, {rule}: it has"
        message += f" {size}."
        raise SkillError(message, "description")
    metadata = frontmatter.get("metadata", {})
    # None stands for wrong metadata, which is no text; "-" for a missing field.
    texts = [*(metadata.values() if isinstance(metadata, dict) else [None])]
    texts += [frontmatter.get(each, "-") for each in TEXT_FIELDS]
    is_usual = all(isinstance(text, str) for text in texts)
    if not is_usual or not 0 < len(frontmatter.get("compatibility", "-")) <= MAX_TEXT:
        rule = f"each value of metadata are texts; compatibility has 1 to {MAX_TEXT}"
        fields = ", ".join(TEXT_FIELDS)
        raise SkillError(f"In the frontmatter, {fields} and {rule} characters.")
