"""Staff try a definition: as any client of any revision, and as whom they choose."""
