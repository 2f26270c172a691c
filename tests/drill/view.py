"""Django's own ASGI application, in which the endpoint is a view."""

from __future__ import annotations

from django.core.asgi import get_asgi_application

application = get_asgi_application()
