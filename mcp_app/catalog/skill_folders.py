"""Skills as folders beside the code of an app: `mcp.skills("skills", prefix="shop")`.

Their files are served as they are (SEP-2640); PyYAML reads the frontmatter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypedDict

from django.utils.translation import gettext as _

from mcp_app.catalog.decorators import definition_problems
from mcp_app.catalog.findings import Finding, advice, calling_module, origin_of
from mcp_app.catalog.registered_function import (
    Declaration,
    DeclaredResource,
    ReadyFunction,
    RegisteredFunction,
)
from mcp_app.catalog.runnable import Runnable, leave_unconverted
from mcp_app.conf import mcp_settings
from mcp_app.interface.definitions import ResourceDefinition
from mcp_app.interface.errors import RegistrationError
from mcp_app.interface.rules import read_requirements, visible
from mcp_app.protocol.frontmatter import frontmatter_text, read_frontmatter
from mcp_app.protocol.skills import MARKDOWN, SKILL_FILE, Skill


class SkillOptions(TypedDict, total=False):
    """What `skills` takes; addresses begin with skill://, then the `prefix`.

    Readers need the `permission` and one of the `groups`, and the `rule` must agree.
    `ttl_ms` and `public` are hints for caches.
    """

    prefix: str
    permission: str
    groups: Iterable[str]
    rule: str | Callable[..., Any]
    tags: Iterable[str]
    position: int
    ttl_ms: int
    public: bool


def read_declared_skills(
    folder: str, options: SkillOptions, problems: list[str]
) -> Iterator[DeclaredResource]:
    """Yield a resource for each skill of a folder; `problems` gets what is unreadable.

    Raises `RegistrationError` if the folder has no skill.
    """
    place, module = origin_of("").place, calling_module()
    top = Path(place.file).parent / folder
    files = sorted(top.glob(f"*/{SKILL_FILE}"))
    if not files:
        raise RegistrationError(
            f"mcp.skills({folder!r}): no folder in {top} has a {SKILL_FILE}."
        )
    prefix = str(options.get("prefix", "")).strip("/")
    for file in files:
        try:
            skill = read_skill_folder(file.parent, prefix)
        except (ValueError, OSError, ImportError) as error:
            remedy = ' Install "django-mcp-app[skills]".'
            hint = remedy if isinstance(error, ImportError) else ""
            problems.append(f"{folder}/{file.parent.name}/{SKILL_FILE}: {error}{hint}")
            continue

        def read_file(path: str = SKILL_FILE, skill: Skill = skill) -> object:
            return skill.read(path)

        # By the module, the registry knows who declared the skill.
        read_file.__module__ = module
        run = Runnable(
            run=read_file,
            style="inline",
            bind=lambda arguments: arguments,
            convert=leave_unconverted,
            skill=skill,
        )
        name = f"{module}.skills({folder!r})/{skill.entry['frontmatter']['name']}"
        definition = _definition_of(skill, options)
        if wrong := [*definition_problems(definition)]:
            raise RegistrationError(f"mcp.skills({folder!r}): {' '.join(wrong)}")
        yield Declaration(definition, ReadyFunction(name, place, run))


def read_skill_folder(folder: Path, prefix: str) -> Skill:
    """Return the skill in a folder; ValueError says why it cannot be read.

    Links, hidden files and `__pycache__` are left out.
    """
    frontmatter = read_frontmatter((folder / SKILL_FILE).read_bytes())
    if frontmatter.get("name") != folder.name:
        raise ValueError(
            f"Its name is {frontmatter.get('name')!r}, but its folder is"
            f" {folder.name!r}: both must be the same."
        )
    paths = {
        each.relative_to(folder).as_posix(): each
        for each in folder.rglob("*")
        if each.is_file() and not each.is_symlink()
    }
    files = {path: file for path, file in paths.items() if not _is_left_out(path)}
    if SKILL_FILE not in files:
        raise ValueError("It is a link. Put the file itself there.")
    size = sum(file.stat().st_size for file in files.values())
    if size > (limit := mcp_settings.limits.skill):
        raise ValueError(
            f"Its files have {size} bytes; LIMITS['skill'] allows {limit}."
        )
    contents = {path: (file.read_bytes(), "") for path, file in files.items()}
    root = f"{prefix}/{folder.name}" if prefix else folder.name
    return Skill(f"skill://{root}/{SKILL_FILE}", frontmatter, contents)


def _is_left_out(path: str) -> bool:
    parts = path.split("/")
    return any(part.startswith(".") or part == "__pycache__" for part in parts)


def _definition_of(skill: Skill, options: SkillOptions) -> ResourceDefinition:
    frontmatter = skill.entry["frontmatter"]
    return ResourceDefinition(
        uri=skill.uri,
        name=frontmatter["name"],
        description=frontmatter["description"],
        mime_type=MARKDOWN,
        size=skill.entry["resources"][0]["size"],
        demands=read_requirements(options),
        tags=frozenset(options.get("tags", ())),
        position=options.get("position", 0),
        ttl_ms=options.get("ttl_ms", 0),
        public=options.get("public", False),
    )


def findings_of(function: RegisteredFunction | ReadyFunction) -> Iterator[Finding]:
    """Yield what is wrong with the skill behind a resource, if there is one."""
    if isinstance(function, ReadyFunction) and function.run.skill is not None:
        yield from skill_findings(function.run.skill)


def skill_findings(skill: Skill) -> Iterator[Finding]:
    """Yield the fields of the frontmatter that YAML 1.1 reads as another value.

    Hosts read it by the core schema of YAML 1.2, but many programs by YAML 1.1.
    """
    import yaml  # noqa: PLC0415 - an extra, without which there is no such skill

    text = frontmatter_text((skill.read().text or "").encode())
    try:
        values_by_yaml_1_1 = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        message = _("Some programs cannot read it: %s. Put the value in quotes.")
        problem = getattr(error, "problem", None) or error
        yield advice("skill-value", "", message % visible(str(problem)))
        return
    for name, value in skill.entry["frontmatter"].items():
        if values_by_yaml_1_1.get(name) != value:
            message = _(
                "Some programs do not read %(name)s as %(value)s. Put the value in"
                " quotes."
            )
            values = {"name": visible(name), "value": visible(repr(value)[:80])}
            yield advice("skill-value", "", message % values)
