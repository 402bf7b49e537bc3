"""A run over its snapshots: what it shows at each, and what happened when."""
