"""The training doctor: what is plainly wrong with a training, since when, and what would help."""
