"""`memoranda hook`: what the hooks of clients call. Its imports are few, because a prompt waits for them."""
