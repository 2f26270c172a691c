"""A prompt's arguments and messages as rows."""
