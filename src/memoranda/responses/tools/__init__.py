"""The tools that run here."""
