"""The page on which a hidden mistake is looked for."""
