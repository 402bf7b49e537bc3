"""Every head of every layer."""
