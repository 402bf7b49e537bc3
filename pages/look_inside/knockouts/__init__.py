"""Knock-outs."""
