"""The official conformance suite, and what the specification demands."""
