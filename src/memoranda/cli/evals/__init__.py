"""`memoranda eval`: measures how well the product retrieves and answers."""
