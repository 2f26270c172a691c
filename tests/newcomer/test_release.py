"""`make release` refuses what is not ready, before it builds."""

from __future__ import annotations

from pathlib import Path

from tests.newcomer.programs import CHECKOUT, ended, run, shell_environment

FILES = ".ci/release pyproject.toml mcp_app/interface/server.py CHANGELOG.md"
BASE = """sed -i 's|^base = .*|base = "https://{}"|' pyproject.toml"""
READY = {
    "base": BASE.format("git.site/app"),
    "VERSION": f"sed -i 's/^VERSION = .*/VERSION = \"9.0.0\"/' {FILES.split()[2]}",
    "CHANGELOG": 'echo "## [9.0.0] - $(date +%F)" >> CHANGELOG.md',
}
COMMIT = "git add . && git -c user.name=a -c user.email=a@b.c commit --quiet -m a"


def test_what_is_missing_is_told_one_by_one(tmp_path: Path) -> None:
    bash(f"cp --parents {FILES} {tmp_path}", CHECKOUT)
    bash("git init --quiet", tmp_path)
    for base in ("", "git.site", "git.site/", "git.site/app/", "a.example/app"):
        bash(f"{BASE.format(base)}; {COMMIT}", tmp_path)
        assert "as base" in refusal(tmp_path)
    for missing, line in READY.items():
        assert missing in refusal(tmp_path)
        bash(line, tmp_path)
        assert "git status" in refusal(tmp_path)
        bash(COMMIT, tmp_path)
    # Nothing is missing any more: it builds, and not everything is committed for that.
    bash(f"cp hatch_build.py {tmp_path}", CHECKOUT)
    bash("echo hatch_build.py > .git/info/exclude", tmp_path)
    assert "does not exist: hatch_build.py" in refusal(tmp_path)
    assert not bash("git tag", tmp_path)


def bash(line: str, folder: Path) -> str:
    return run(["bash", "-c", line], folder, shell_environment())


def refusal(folder: Path) -> str:
    done = ended([".ci/release", "9.0.0"], folder, shell_environment())
    assert done.returncode
    return done.stderr
