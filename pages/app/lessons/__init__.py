"""The open lesson of a session: what it locks, its tasks, and its bar on every page."""
