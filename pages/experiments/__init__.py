"""Experiments that teach."""
