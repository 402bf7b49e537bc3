"""Own data."""
