"""The page *Try it*: a form from the definition, and what a client gets."""
