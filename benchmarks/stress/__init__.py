"""Stress tests: each tries to lose a run, or to crash or slow the app, and counts what held."""
