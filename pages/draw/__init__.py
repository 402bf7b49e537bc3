"""Draw a digit for a trained model."""
