"""Threads and event loops: worker threads for blocking calls, and a portal for callers without a loop."""
