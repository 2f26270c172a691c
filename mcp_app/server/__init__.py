"""From a parsed message to its answer; knows no transport, framework or row."""
