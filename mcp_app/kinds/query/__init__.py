"""The kind `query`: staff choose which rows and sums of opened models are shown."""
