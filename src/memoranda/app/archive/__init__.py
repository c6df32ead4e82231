"""A tenant's data as one file: written by `writing`, checked and read by `reading`, restored by `restoring`."""
