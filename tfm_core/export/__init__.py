"""Runs as files: exported, and imported again. All of it works without the app."""
