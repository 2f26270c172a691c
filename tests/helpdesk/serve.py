"""Serves the help desk on a port of loopback until it is ended.

    HELPDESK_DATABASE=… HELPDESK_KEY=… HELPDESK_RELEASE=… \\
        python -m tests.helpdesk.serve 8766
"""

from __future__ import annotations

import os
import sys


def main(port: int) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.helpdesk.settings"
    import django  # noqa: PLC0415 - the settings are named now
    import uvicorn  # noqa: PLC0415
    from django.core.asgi import get_asgi_application  # noqa: PLC0415
    from django.core.management import call_command  # noqa: PLC0415

    django.setup()
    call_command("migrate", run_syncdb=True, verbosity=0)
    uvicorn.run(get_asgi_application(), host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main(int(sys.argv[1]))
