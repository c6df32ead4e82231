"""Search indexes over the rows: vectors and keywords."""
