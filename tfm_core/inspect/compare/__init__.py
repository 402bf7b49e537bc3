"""Several runs together: what differs between them, their names by it, their curves."""
