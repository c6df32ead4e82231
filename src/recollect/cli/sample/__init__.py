"""A short conversation and questions about it, for `recollect demo`."""
