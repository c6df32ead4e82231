"""Where data is stored: SQL databases, the bytes of uploaded files, and the lock on a data folder."""
