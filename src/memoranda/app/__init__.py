"""The application: every part opened from a configuration, started and stopped."""
