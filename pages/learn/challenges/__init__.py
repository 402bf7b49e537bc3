"""Challenges: predict, find, reach."""
