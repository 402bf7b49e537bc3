"""Known findings about Transformers, each shown on runs."""
