from __future__ import annotations

from tests.drill.running import started
from tests.drill.telling import END


def test_a_server_tells_its_threads_and_tasks_and_serves_on() -> None:
    server = started("uvicorn")
    try:
        server.tell()
        told = server.output
        assert "Current thread" in told
        assert "Server.serve()" in told
        assert END in told
    finally:
        assert server.stop() == 0
