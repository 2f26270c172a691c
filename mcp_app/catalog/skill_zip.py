"""A skill that somebody uploads: a zip of its folder, or SKILL.md alone."""

from __future__ import annotations

import re
import stat
from io import BytesIO
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from mcp_app.conf import mcp_settings
from mcp_app.protocol import skills
from mcp_app.protocol.frontmatter import read_frontmatter
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.skills import MAX_FILES, SKILL_FILE, SkillError


class SkillArchive(NamedTuple):
    """An uploaded skill; `files` are those beside SKILL.md, None if it came alone."""

    frontmatter: JsonObject
    body: str
    files: dict[str, bytes] | None = None
    left_out: tuple[str, ...] = ()


def read_skill_zip(content: bytes) -> SkillArchive:
    """Read a zip or a SKILL.md; the ValueError says what is wrong, and what to do.

    If all files of a zip are in one folder, paths begin below it.
    """
    # Each zip begins with these letters.
    if not content.startswith(b"PK"):
        return _read_skill_file(content)
    try:
        with ZipFile(BytesIO(content)) as archive:
            files, left_out = _read_entries(archive)
    except Exception as error:
        # Python's reader raises errors of many types.
        raise SkillError(f"The zip cannot be read: {error}") from error
    if SKILL_FILE not in files and len({path.split("/")[0] for path in files}) == 1:
        files = {path.partition("/")[2]: each for path, each in files.items()}
    if SKILL_FILE not in files:
        raise SkillError("The zip has no SKILL.md at its top, or in its only folder.")
    skill = _read_skill_file(files.pop(SKILL_FILE))
    return skill._replace(files=files, left_out=left_out)


def _read_skill_file(content: bytes) -> SkillArchive:
    try:
        frontmatter = read_frontmatter(content)
    except ImportError as error:
        line = 'pip install "django-mcp-app[skills]"'
        raise SkillError(f"SKILL.md cannot be read without PyYAML: {line}") from error
    text = content.decode("utf-8-sig").replace("\r\n", "\n")
    # The lines `---` enclose the frontmatter; the third part follows it.
    body = re.split(r"(?m)^---[\t ]*$", text, maxsplit=2)[2]
    return SkillArchive(frontmatter, body.lstrip("\n"))


def _read_entries(archive: ZipFile) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the files by path, and the paths that are left out."""
    if (count := len(archive.filelist)) > MAX_FILES:
        raise SkillError(f"it has {count} entries, and {MAX_FILES} are allowed.")
    entries = [each for each in archive.filelist if not each.is_dir()]
    skills.check_paths([each.orig_filename for each in entries])
    files: dict[str, bytes] = {}
    hidden = []
    bytes_left = max_bytes = mcp_settings.limits.skill
    for entry in entries:
        if re.search(r"(^|/)(\.|__MACOSX/)", path := entry.filename):
            hidden.append(path)
            continue
        # The upper 16 bits are the mode of the file on Unix.
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise SkillError(f"{path!r} is a link. Put the file itself into it.")
        # For other compressions, Python's reader does not limit the memory.
        if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise SkillError(f"{path!r} is not packed by “deflate”.")
        with archive.open(path) as file:
            files[path] = file.read(bytes_left + 1)
        if (bytes_left := bytes_left - len(files[path])) < 0:
            rule = f'MCP["LIMITS"]["SKILL"] allows {max_bytes:,}'
            raise SkillError(f"unpacked it has more bytes than {rule}.")
    return files, tuple(hidden)
