"""The admin of tools, resources, resource templates and prompts."""
