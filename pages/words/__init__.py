"""Words into tensors."""
