"""Streamable HTTP, HTTP+SSE, stdio, and clients within the process."""
