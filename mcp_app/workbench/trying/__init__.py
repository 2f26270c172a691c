"""Staff try a definition: as a client of any revision, and as a caller they choose."""
