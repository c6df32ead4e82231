"""Agents: what a language model answers, with what it may search, remember and call."""
