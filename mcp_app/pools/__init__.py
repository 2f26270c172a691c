"""Threads: for user code, and one reader and one writer for our own statements."""
