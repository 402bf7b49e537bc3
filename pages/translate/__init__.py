"""A trained model writes, token by token."""
