"""The files for deployment agree with the settings, the docs and each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from mcp_app.conf import KEYS, Limits
from mcp_project.environment import PREFIX, mcp_settings
from tests.process.nginx import documented, replaced

ROOT: Final = Path(__file__).parent.parent
COMPOSE, KUBERNETES = "deploy/compose.yaml", "deploy/kubernetes.yaml"
UNIT, EXAMPLE = "deploy/mcp.service", "deploy/.env.example"
HEALTH: Final = "/mcp/health"
ASKED: Final = {"path": HEALTH, "port": "http"}


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def compare(name: str = "", line: str = "", instead: str = "") -> None:
    """Compare the files, one of them perhaps changed; raise `AssertionError`."""
    names = ("Dockerfile", COMPOSE, KUBERNETES, UNIT, EXAMPLE)
    texts = {each: read(each) for each in names}
    if name:
        texts[name] = replaced(texts[name], {line: instead})
    services = yaml.safe_load(texts[COMPOSE])["services"]
    plain, *jobs, _ = yaml.safe_load_all(texts[KUBERNETES])
    _, *pods = pods_of(jobs)
    [web], [worker] = (each["containers"] for each in pods)
    pod_s, tasks_s = (each["terminationGracePeriodSeconds"] for each in pods)
    pause_s = int(web["lifecycle"]["preStop"]["exec"]["command"][-1])
    [server_s] = re.findall(r"graceful-shutdown (\d+)", texts["Dockerfile"])
    [unit_s] = re.findall(r"^TimeoutStopSec=(\d+)$", texts[UNIT], re.MULTILINE)
    stops_s = (int(unit_s), pod_s - pause_s, grace_s(services["web"]))
    assert Limits().drain < int(server_s) < min(stops_s), "calls are cut"
    assert int(worker["args"][-1]) < tasks_s, "tasks are cut"
    tasks_s = grace_s(services["worker"])
    assert int(services["worker"]["command"][-1]) < tasks_s, "tasks are cut"

    assert HEALTH in texts["Dockerfile"], "probe"
    kinds = ("startup", "readiness", "liveness")
    probes = [web[f"{each}Probe"].get("httpGet") for each in kinds]
    assert probes == [ASKED, ASKED, None], "probe"
    source = read("mcp_project/settings.py")
    known = {
        *re.findall(r'env\.\w+\(\s*"(\w+)"', source),
        *(PREFIX + key for key in KEYS),
        *("PORT", "WEB_CONCURRENCY"),
    }
    example = dict(re.findall(r"^(?:# )?([A-Z_]+)=(.*)$", texts[EXAMPLE], re.M))
    in_compose = {*re.findall(r"\$\{(\w+):\?\}", texts[COMPOSE])}
    assert in_compose <= example.keys(), "not in the example"
    given = {
        **{each["name"]: each["value"] for each in web["env"]},
        **{name: v for name, v in example.items() if not name.startswith("OTEL_")},
        **plain["data"],
        **services["worker"]["environment"],
        **services["web"]["environment"],
    }
    assert given.keys() - in_compose <= known, "nobody reads it"
    mcp_settings({variable: str(value) for variable, value in given.items()})


def pods_of(jobs: list[Any]) -> list[Any]:
    pods = [each["spec"]["template"]["spec"] for each in jobs]
    assert {each.get("enableServiceLinks") for each in pods} == {False}, "as settings"
    return pods


def grace_s(service: Any) -> int:
    return int(service["stop_grace_period"].removesuffix("s"))


def test_they_agree() -> None:
    compare()


@pytest.mark.parametrize(
    ("name", "line", "instead", "found"),
    [
        ("Dockerfile", HEALTH, "/up", "probe"),
        (COMPOSE, "period: 40s", "period: 30s", "calls are cut"),
        (COMPOSE, "period: 660s", "period: 60s", "tasks are cut"),
        (COMPOSE, "MCP_TASKS:", "MCP_TASK:", "nobody reads it"),
        (EXAMPLE, "SITE_HOST=", "HOST=", "not in the example"),
        (KUBERNETES, "Seconds: 45", "Seconds: 35", "calls are cut"),
        (
            KUBERNETES,
            f"{HEALTH}, port: http}}\n            periodSeconds: 5",
            "/}",
            "probe",
        ),
        (KUBERNETES, "  ALLOWED_HOSTS:", "  HOSTS:", "nobody reads it"),
        (KUBERNETES, "Never\n      enable", "Never\n      #", "as settings"),
        (UNIT, "StopSec=40", "StopSec=20", "calls are cut"),
    ],
)
def test_a_fault_is_found(name: str, line: str, instead: str, found: str) -> None:
    with pytest.raises(AssertionError, match=found):
        compare(name, line, instead)


def test_they_are_what_the_docs_say_and_the_tests_run() -> None:
    documents = documented("nginx", "upstream").splitlines()
    own = [each for each in documents if each not in read("deploy/nginx.conf")]
    assert [each for each in own if each[:1] != "#" and "127.0.0.1" not in each] == [
        "    server_name mcp.example.com;",
        "        access_log /var/log/nginx/mcp.log without_query;",
        "        access_log /var/log/nginx/mcp.log without_query;",
    ]
    page = re.sub(r"[\s\\]+", " ", read("docs/deploy/proxies.md"))
    [options] = re.findall(r"--timeout-grace.*?--no-proxy-headers", page)
    assert all(options in read(name) for name in ("Dockerfile", UNIT))
    pins, tried = (
        dict(re.findall(r"^([\w-]+)(?:\[\w+\])?==(\S+)", text, re.MULTILINE))
        for text in (read("requirements-deploy.txt"), read("requirements-test.txt"))
    )
    assert {name: tried.get(name, pins[name]) for name in pins} == pins
    assert not pins.keys() & {*re.findall(r"^([\w-]+)", read("requirements.txt"), re.M)}


def test_no_key_and_no_database_comes_into_the_image() -> None:
    lines = read(".dockerignore").splitlines()
    copied = max(index for index, each in enumerate(lines) if each.startswith("!"))
    kept_out = {each.removeprefix("**/") for each in lines[copied:]}
    # Those that git leaves out, too, in each folder that is copied.
    assert {".env", ".secret_key", "db.sqlite3*"} <= kept_out
