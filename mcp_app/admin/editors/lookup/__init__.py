"""The form of a query: what of an open model is looked up."""
