"""Good practice."""
