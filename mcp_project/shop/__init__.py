"""A small shop, which `make run` serves as a demo."""
