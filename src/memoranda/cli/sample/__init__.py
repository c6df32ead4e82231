"""A short conversation and questions about it, for `memoranda demo`."""
