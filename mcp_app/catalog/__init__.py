"""What a server offers: declared in code, stored in rows, kept as snapshots."""
