"""Attention by hand."""
