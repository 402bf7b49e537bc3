"""Looking into any PyTorch model: one call records the attention of a forward pass."""
