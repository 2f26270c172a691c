"""Functions behind the fixtures: `conformance.*` for the suite, `drill.*` for ours."""
