"""Synchronizes a folder of files with memories or with a vector store."""
