"""Attention by hand: every number from a few vectors to the output."""
