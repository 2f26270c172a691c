"""What starts the programs of tests kills no others."""

from __future__ import annotations

from subprocess import TimeoutExpired

import pytest

from tests.drill.programs import Program, _groups, _tell_heir


@pytest.mark.programs
def test_who_got_the_number_of_a_program_lives() -> None:
    program = Program(["true"])
    assert program.process.wait() == 0
    with Program(["sleep", "60"]) as other:
        _tell_heir(_groups.discard, program.process.pid)
        # As if the system had given it again.
        program.process.pid = other.process.pid
        program.kill()
        with pytest.raises(TimeoutExpired):
            other.process.wait(1)
