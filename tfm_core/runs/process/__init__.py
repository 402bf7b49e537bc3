"""The worker process that trains a run, and its identity."""
