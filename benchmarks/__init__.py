"""Load, floors and peers beside which the server is measured."""
