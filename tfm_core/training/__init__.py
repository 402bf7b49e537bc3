"""Training: the loop as a generator of events, objectives, schedules, devices, checkpoints."""
