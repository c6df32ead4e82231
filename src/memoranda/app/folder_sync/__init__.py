"""A folder of files brought into memories or into a vector store, and kept in step."""
