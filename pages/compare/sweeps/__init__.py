"""Sweeps: one experiment tried with many settings, which Optuna suggests."""
