"""OpenAPI documents of other sites, read into offers of calls."""
