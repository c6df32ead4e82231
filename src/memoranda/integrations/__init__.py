"""Adapters for agent frameworks, one package or module each. Import the one that is needed: none is a dependency."""
