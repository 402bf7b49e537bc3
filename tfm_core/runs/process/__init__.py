"""The worker process that trains a run, and how it is told from others."""
