"""Threads: for user code, and for our own statements (`pools.database.POOLS`)."""
