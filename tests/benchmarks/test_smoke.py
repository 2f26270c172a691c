"""The benchmarks can be run: figures, load, servers, random input."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import fuzzed, fuzzing, load, piped, postgres, servers
from benchmarks.__main__ import main
from benchmarks.client import WrongAnswerError
from benchmarks.figures import FIGURES
from benchmarks.instructions import environment_in
from benchmarks.load import Answer
from benchmarks.messages import call
from benchmarks.processes import ROOT, ServerFailedError
from tests.reliability.databases import program

BODY = b'{"jsonrpc":"2.0","id":100000000,"result":{"structuredContent":5}}'
IN_PROCESS = """
from benchmarks import instructions
instructions.CALLS = instructions.TRACED = 2
instructions.WARM_UP = 100
class Counter(instructions._Counter):
    def count(self, name, function):
        self.names.append(name)
        function()
instructions._Counter = Counter
instructions.main()
"""


def test_each_figure_can_be_chosen_and_is_described(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert all(map(callable, FIGURES.values()))
    text = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    assert {*re.findall(r"^\| .+? \| `([\w-]+)` \| ", text, re.M)} == {*FIGURES}
    assert main(["--only", "nothing|cata"]) == 2
    assert "there are: control, calls, audit" in capsys.readouterr().err


def test_the_calls_whose_instructions_are_counted_are_right(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_PROCESS],
        cwd=ROOT,
        env={**os.environ, **environment_in(tmp_path), "MCP_AUDIT": "batched"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names = ["stateless", "floor", "traced", "followed", "sync", "session", "guarded"]
    assert Counter(json.loads(done.stdout)) == dict.fromkeys(names, 3)


@pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is not installed")
def test_a_wrong_answer_voids_a_run() -> None:
    answer = Answer.cut(BODY, [])
    with servers.floor(answer) as floor:
        assert load.run(floor, call("drill_add"), answer, seconds=1).calls
        wrong = replace(answer, after=answer.after.replace(b"5", b"6"))
        with pytest.raises(WrongAnswerError, match=r"'wrong': \d+}.*200 .*\":5"):
            load.run(floor, call("drill_add"), wrong, seconds=1)


def test_a_server_on_pipes_is_called() -> None:
    with piped.drill() as server:
        server.call(first=1, count=20, together=4)


def test_each_statement_of_the_measured_database_is_counted() -> None:
    try:
        program("postgres")
    except ServerFailedError as missing:
        pytest.skip(str(missing))
    with postgres.cluster() as database, database.connected() as connection:
        before = database.statements()
        connection.execute("SELECT 1")
        assert database.statements() - before == 1
        assert database.statements("a text that is in none") == 0


def test_each_parser_takes_its_seeds() -> None:
    assert fuzzed.TARGETS.keys() == {*fuzzing.NAMES}
    for name, (text, *_) in fuzzed.SEEDS.items():
        fuzzed.TARGETS[name](text.encode())
