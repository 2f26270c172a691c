"""Streamable HTTP, of all revisions: as an ASGI application, and as a view."""
