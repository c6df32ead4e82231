"""How well recall works, measured on labelled questions through the product's own write and read path."""
