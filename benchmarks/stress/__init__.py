"""Attacks: each tries to lose a run, to take the app down or to slow it, and counts what held."""
