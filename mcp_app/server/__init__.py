"""From a parsed message to its answer; only `invocation` knows Django."""
