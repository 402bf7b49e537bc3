"""Pictures to words."""
