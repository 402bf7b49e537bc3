"""What a trained model does without one of its parts."""
