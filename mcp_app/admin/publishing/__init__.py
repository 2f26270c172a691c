"""Publishing: compare, publish, roll back, export and import."""
