"""Walk through one forward pass."""
