"""Models: their cost by part, positions, and tensors on their way through."""
