"""Where a trained model fails: its answers to the validation set, grouped, scored, calibrated."""
