"""A secret that is written anywhere is found at the end of a run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.drill.databases import prepared_file
from tests.drill.running import ROOT
from tests.secrecy import VARIABLE, counted, found

PROGRAM: Final = """
import logging, sys
import django
django.setup()
from django.contrib.auth.models import User
from mcp_app.models import AccessToken
user = User.objects.create_user("ana")
token = AccessToken.objects.make(user=user, name="laptop", may="read")[1]
said = token if "whole" in sys.argv else token[:10]
logging.getLogger("mcp_app.quiet").debug("Somebody showed %s", str(said))
"""


def test_a_process_tells_what_it_wrote(tmp_path: Path) -> None:
    """At any level, whether it is shown or not."""
    for argument, places in (("part", []), ("whole", ["log mcp_app.quiet"])):
        folder = tmp_path / argument
        database = shutil.copy(prepared_file(), tmp_path / f"{argument}.sqlite3")
        environment = {
            **os.environ,
            "DATABASE_URL": f"sqlite:///{database}",
            "DJANGO_SETTINGS_MODULE": "tests.drill.settings",
            VARIABLE: str(folder),
        }
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM, argument],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert (ended.stdout, ended.stderr) == ("", "")
        assert [each.partition(":")[0] for each in found(folder)] == places
        assert counted(folder)["log"] >= 1
