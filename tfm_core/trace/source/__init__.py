"""One standalone PyTorch file of exactly one model."""
