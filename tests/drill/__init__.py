"""The fixture set: the definitions and the functions that the server is tested with."""
