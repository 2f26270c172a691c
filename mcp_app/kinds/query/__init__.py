"""The kind `query`: rows and sums of models that code opens, chosen by staff."""
