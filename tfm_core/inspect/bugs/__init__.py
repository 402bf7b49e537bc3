"""A run and its twin with one hidden mistake: what can be measured on both, and what it was."""
