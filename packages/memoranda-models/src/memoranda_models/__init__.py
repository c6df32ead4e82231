"""The embedding models that Memoranda has from the start, as data. `memoranda` reads them."""
