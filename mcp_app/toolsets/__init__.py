"""Tools that one line asks for: of a model, of the admin, of an API."""
