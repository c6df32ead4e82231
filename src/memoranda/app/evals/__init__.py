"""Measures retrieval on labelled questions through the product's own write and read path."""
