"""Training: curves, runs compared, sweeps, one step, and speed."""
