"""The page on which a trained model writes, token by token."""
