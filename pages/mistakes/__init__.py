"""Where a trained model fails."""
