"""Tools from documents of OpenAPI, which are compared when the documents change."""
