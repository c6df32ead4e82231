"""snowflake-arctic-embed-s, as data."""
