"""The pages of tasks."""
