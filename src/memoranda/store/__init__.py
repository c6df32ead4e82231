"""Rows, the transactions over them, the indexes kept in step with them, and what every feature shares."""
