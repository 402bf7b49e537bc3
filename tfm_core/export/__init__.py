"""Runs as files to take away, and taken in again: whatever is here works without the app."""
