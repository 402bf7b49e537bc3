"""Runs as files: exports, films and published folders; and uploads."""
