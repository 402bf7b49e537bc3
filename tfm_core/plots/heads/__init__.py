"""Attention: maps, heads, and a model without them."""
