"""potion-base-8M, as data."""
