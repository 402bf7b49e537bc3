"""Train and watch."""
