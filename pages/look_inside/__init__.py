"""Look inside: what a model is made of, and what it computes."""
