"""Find the bug."""
