"""The files of multilingual-e5-small, which `memoranda` reads as `local:multilingual-e5-small`. No code."""
