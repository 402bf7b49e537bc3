"""Checks of what the files say: ``python -m tests.static`` parses each once and runs all checks."""
