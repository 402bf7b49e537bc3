"""Runs as files: exports, films and the gallery; and uploads."""
