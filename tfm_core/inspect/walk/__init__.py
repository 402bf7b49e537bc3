"""The forward pass as a walk, step by step, with the model's own tensors."""
