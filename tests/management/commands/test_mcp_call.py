"""`mcp_call`: a tool called from a shell, by pipes and at a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from typing import Final

import pytest
from django.core.management import CommandError, call_command

from mcp_app.models import Server
from mcp_app.process import current
from mcp_app.process.runtime import Process
from tests import behaviours
from tests.testing.running import ROOT, SITE

MAKE: Final = """
import django
django.setup()
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
call_command("migrate", run_syncdb=True, verbosity=0)
from tests.testing.site.parcels.models import Parcel
maria = User.objects.create_user("maria")
maria.user_permissions.add(Permission.objects.get(codename="change_parcel"))
for number in ("A-1", "A-2"):
    Parcel.objects.create(number=number)
"""
PATIENCE_S: Final = 60


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The site with its tables, a user and two parcels."""
    file = tmp_path_factory.mktemp("site") / "db.sqlite3"
    made = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{file}",
        "DJANGO_SETTINGS_MODULE": f"{SITE}.settings",
        "MCP_USER": "maria",
    }
    subprocess.run([sys.executable, "-c", MAKE], cwd=ROOT, env=made, check=True)
    return made


def start(
    environment: dict[str, str], *arguments: str, terminal: int | None = None
) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE if terminal is None else terminal
    return subprocess.Popen(
        [sys.executable, "-m", "django", "mcp_call", *arguments],
        cwd=ROOT,
        env=environment,
        stdin=pipe,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if terminal is None else terminal,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    ("arguments", "typed", "status", "printed"),
    [
        (["parcel_get", "--arguments", "-", "--json"], '{"number": "A-1"}', 0,
         '"structuredContent"'),
        (["parcel_send", "--number=A-1"], "", 4, "Add --yes to call it."),
        (["parcel_send", "--number=A-1", "--yes"], "", 0, "A-1 stays here."),
        (["parcel_add", "--number=A-3", "--fail", "true", "--yes"], "", 1,
         "Its error number in the log is"),
    ],
)  # fmt: skip
def test_by_pipes(
    environment: dict[str, str],
    arguments: list[str],
    typed: str,
    status: int,
    printed: str,
) -> None:
    running = start(environment, *arguments)
    out, error = running.communicate(typed, timeout=PATIENCE_S)
    assert (running.returncode, printed in out + error) == (status, True), out + error


@pytest.fixture
def _behaviours(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let anybody call the tools of `tests/behaviours.py`."""
    Server.objects.filter(slug="default").update(access="public")
    process = partial(Process, behaviours.registry)
    monkeypatch.setattr(current, "Process", process)


@pytest.mark.usefixtures("_behaviours")
@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["typed", "--count=1", "--user=nobody"], 2, "“nobody”"),
        (["type"], 2, "Did you mean 'typed'?"),
        (["typed", "--server=none"], 2, "no MCP server 'none'"),
        (["typed", "--nr", "1"], 3, "--nr is no option of typed. It has: --count"),
        (["typed", "--arguments={"], 3, "--arguments is no JSON"),
        (["typed", "--arguments=[]"], 3, "must be a JSON object, and not []"),
        (["typed", "--count=1", "--count=2"], 3, "--count was given 2 times"),
    ],
)
def test_what_cannot_be_called(
    arguments: list[str], status: int, sentence: str
) -> None:
    with pytest.raises(CommandError, match=re.escape(sentence)) as caught:
        call_command("mcp_call", *arguments)
    assert caught.value.returncode == status


@pytest.mark.usefixtures("_behaviours")
def test_values_of_options(capsys: pytest.CaptureFixture[str]) -> None:
    options = "--count 3 --ratio=2 --on --names a --names b --kind b --text 7"
    call_command("mcp_call", "typed", *options.split(), '--options={"x": 1}')
    assert json.loads(capsys.readouterr().out) == {
        **{"count": 3, "ratio": 2.0, "on": True, "names": ["a", "b"]},
        **{"options": {"x": 1}, "kind": "b", "text": "7"},
    }
    with pytest.raises(SystemExit) as caught:
        call_command("mcp_call", "typed", "--count", "many")
    assert caught.value.code == 3
    assert "$.count" in capsys.readouterr().out


class Terminal:
    """A person at a terminal, who reads what is written before typing."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        self._own, theirs = pty.openpty()
        self.running = start(environment, *arguments, terminal=theirs)
        os.close(theirs)
        self._read = ""

    def wait_for(self, text: str) -> None:
        end = time.monotonic() + PATIENCE_S
        # When the program has ended, reading raises an OSError.
        with suppress(OSError):
            while text not in self._read and time.monotonic() < end:
                self._read += os.read(self._own, 4096).decode()
        assert text in self._read
        self._read = self._read.partition(text)[2]

    def type_line(self, text: str) -> None:
        os.write(self._own, f"{text}\n".encode())

    def end(self) -> tuple[int, str]:
        out, _ = self.running.communicate(timeout=PATIENCE_S)
        os.close(self._own)
        return self.running.returncode, out


def test_at_a_terminal_a_form_is_filled_in(environment: dict[str, str]) -> None:
    person = Terminal(environment, "parcel_send", "--number", "A-2")
    person.wait_for("parcel_send may change something. Call it? [y/N]")
    person.type_line("y")
    person.wait_for("Really send A-2?")
    person.wait_for("sure")
    person.type_line("true")
    assert person.end() == (0, "A-2 was sent.\n")


def test_ctrl_c_tells_the_function(environment: dict[str, str]) -> None:
    person = Terminal(environment, "parcel_watch")
    person.wait_for("It is on its way")
    person.running.send_signal(signal.SIGINT)
    person.wait_for("Nobody waits any more.")
    person.wait_for("The call was cancelled.")
    assert person.end() == (130, "")
