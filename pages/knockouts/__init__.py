"""The page that switches parts of a trained model off."""
