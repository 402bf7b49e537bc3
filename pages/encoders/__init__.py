"""Reading: encoders."""
