"""Language models and embedding models, in this process or behind HTTP."""
