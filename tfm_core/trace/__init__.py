"""One forward pass of a model, taken apart: the anatomy in order, with its tensors."""
