"""Data of other systems, read: conversations, memories and notes as plain values. Nothing is stored here."""
