"""Making it fast."""
