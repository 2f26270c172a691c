"""One object per OS process: caches and their freshness, start, stop, announcements."""
