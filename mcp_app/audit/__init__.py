"""The call log: who called what, and with which outcome, written in batches."""
