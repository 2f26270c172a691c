"""The home page: how to begin, servers with their addresses, what needs care."""
