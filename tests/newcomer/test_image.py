"""The image is built from nothing, and runs as in a container; nothing is left of it.

No image is fetched: BASE names one that is there, or packages of this system make one.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.drill.databases import postgresql_database
from tests.drill.ports import HOST, free_port
from tests.drill.programs import Program, ProgramFailed
from tests.newcomer.programs import CHECKOUT, START_S, ended, run

pytestmark = pytest.mark.long

GRACE_S: Final = 40
APART: Final = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh")
ADMIN: Final = (
    "from django.contrib.auth.models import User; User.objects.create_superuser('eve')"
)
here = partial(run, folder=CHECKOUT, environment=os.environ)


@pytest.fixture
def image(tmp_path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give the folder that its files are in, and its configuration."""
    for name in ("buildah", "mmdebstrap"):
        if shutil.which(name) is None or os.getuid():
            pytest.skip(f"{name} is missing, or not run by root.")
    buildah = [
        "buildah",
        "--root",
        f"{tmp_path}/images",
        "--runroot",
        f"{tmp_path}/run",
    ]
    base = os.environ.get("BASE")
    make = ["make", f"BUILDAH={' '.join(buildah)}", f"BASE={base or 'localhost/base'}"]
    try:
        here([*make, *([] if base else ["image-base"]), "image", "IMAGE=localhost/mcp"])
        told = here([*buildah, "inspect", "--type", "image", "localhost/mcp"])
        container = here([*buildah, "from", "localhost/mcp"]).strip()
        root = here([*buildah, "mount", container]).strip()
        yield root, json.loads(told)["Docker"]["config"]
    finally:
        here([*buildah, "rm", "--all"])
        # The folder of its images is mounted, too.
        ended(["umount", f"{tmp_path}/images/overlay"], CHECKOUT, os.environ)
        shutil.rmtree(tmp_path)


async def test_it_migrates_serves_and_ends(
    image: tuple[str, Mapping[str, Any]],
) -> None:
    root, config = image
    apart = [*APART, str(Path(__file__).with_name("image.sh")), root, config["User"]]
    apart += [config["WorkingDir"], *config["Env"], "WEB_CONCURRENCY=2"]
    with pytest.raises(ProgramFailed, match="Read-only file system"):
        here([*apart, "touch", "here"])
    port = free_port()
    apart += [f"PORT={port}", f"ALLOWED_HOSTS={HOST}"]
    with postgresql_database() as database:
        apart += [f"DATABASE_URL={database}", f"SECRET_KEY={secrets.token_hex(32)}"]
        manage = [*apart, "python", "manage.py"]
        here([*manage, "migrate"])
        here([*manage, "shell", "-c", ADMIN])
        token = here([*manage, "mcp_token", "new", "eve", "laptop"]).split()[0]
        check = [*apart, *config["Healthcheck"]["Test"][1:]]
        with Program([*apart, *config["Entrypoint"], *config["Cmd"]]) as web:
            web.wait_until(
                lambda: not ended(check, CHECKOUT, os.environ).returncode, START_S
            )
            http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"})
            url = f"http://{HOST}:{port}/mcp"
            async with (
                http,
                Client(streamable_http_client(url, http_client=http)) as mcp,
            ):
                answer = await mcp.call_tool("find_orders", {})
            assert answer.structured_content == {"result": []}
            pid = web.process.pid
            first = Path(f"/proc/{pid}/task/{pid}/children").read_text()
            os.kill(int(first), signal.SIGTERM)
            assert web.wait(GRACE_S) == 0
