"""Known findings about Transformers, shown on runs: how each is measured, and when it appears."""
