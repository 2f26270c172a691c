"""What README.md and docs/settings.md say, held against what is there."""

from __future__ import annotations

import ast
import re
from dataclasses import asdict
from pathlib import Path
from typing import Final

from mcp_app.conf import KEYS, LIMITS, Limits, McpSettings

ROOT: Final = Path(__file__).parent.parent
README: Final = (ROOT / "README.md").read_text("utf-8")
CONTRIBUTING: Final = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
SETTINGS: Final = (ROOT / "docs/settings.md").read_text("utf-8")

CODE: Final = re.compile(r"```\w*\n(.*?)```|`([^`]+)`", re.DOTALL)
UNITS: Final = {"KiB": 1024, "MiB": 1024**2, "s": 1, "days": 86_400}
# Where the default is not what the key holds, but what it then means.
SAID_DEFAULTS: Final = {
    "PUBLIC_URL": "none",
    "HOSTS": "those of `PUBLIC_URL`, else `ALLOWED_HOSTS`",
    "ORIGINS": "loopback origins in DEBUG",
    "STATE_KEYS": "`[]`: from `SECRET_KEY` and its fallbacks",
    "LIMITS": "`{}`",
    "CALL_CONTEXT_MANAGERS": "`[]`",
    "CALL_CONTEXT_HEADERS": "`[]`",
    "DISABLED_TOOLS": "`[]`: all are on",
    **dict.fromkeys(("TRACING", "METRICS"), "none: off"),
}


def table(heading: str) -> dict[str, str]:
    text = SETTINGS.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text, re.MULTILINE)
    assert len({name for name, _ in rows}) == len(rows)
    return dict(rows)


def value(said: str) -> object:
    if said.startswith("`"):
        return ast.literal_eval(said.strip("`"))
    number, _, unit = said.replace(",", "").partition(" ")
    return int(number) * UNITS.get(unit, 1)


def test_every_setting_is_told_with_its_default() -> None:
    told = table("The dict `MCP`")
    assert set(told) == set(KEYS)
    defaults = {name.upper(): each for name, each in asdict(McpSettings()).items()}
    for key, said in told.items():
        if key in SAID_DEFAULTS:
            assert said == SAID_DEFAULTS[key]
            assert not defaults[key] or key == "LIMITS"
        else:
            assert value(said) == defaults[key], key


def test_every_limit_is_told_with_its_default() -> None:
    told = table("Limits")
    assert set(told) == set(LIMITS)
    assert {name: value(said) for name, said in told.items()} == asdict(Limits())


def test_every_variable_of_the_project_is_told() -> None:
    source = (ROOT / "mcp_project/settings.py").read_text("utf-8")
    read = re.findall(r'env\.\w+\(\s*"(\w+)"', source)
    assert len(read) > 10
    assert set(table("The environment of `mcp_project`")) == set(read)


def test_every_named_target_and_file_is_there() -> None:
    code = "\n".join(block or inline for block, inline in CODE.findall(README))
    named = set(re.findall(r"\bmake ([a-z-]+)", code))
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert {"run", "test"} <= named <= set(targets)
    for path in re.findall(r"\]\(([^):]+)\)", README):
        assert (ROOT / path).is_file(), path


def test_the_packages_of_the_system_are_those_that_ci_installs() -> None:
    script = (ROOT / ".ci/run").read_text("utf-8")
    [packages] = re.findall(r"^packages=\((.*)\)$", script, re.M)
    rows = re.findall(r"^\|.*\| `([a-z0-9 -]+)` \|$", CONTRIBUTING, re.M)
    told = {package for row in rows for package in row.split()}
    # A compiler comes with the machines of the continuous integration.
    assert told - {"gcc"} == set(packages.split())
    assert "apt-get" not in (ROOT / ".github/workflows/tests.yml").read_text("utf-8")


def test_readme_lists_every_page() -> None:
    linked = set(re.findall(r"\]\((docs/[a-z/-]+\.md)\)", README))
    pages = (ROOT / "docs").rglob("*.md")
    assert linked == {str(page.relative_to(ROOT)) for page in pages}
