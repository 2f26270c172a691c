"""The site that ships with mcp_app: quick start, demo and deployment example."""
