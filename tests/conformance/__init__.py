"""The official conformance suite against the fixture server."""
