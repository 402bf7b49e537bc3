"""The page on which a digit is drawn for a trained model."""
