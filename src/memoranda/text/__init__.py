"""Tokens, chunks, hashes and highlights of a text: pure functions, no I/O beyond shipped data."""
