"""HTTP+SSE (2024-11-05): a stream for all answers, and an address to POST to."""
