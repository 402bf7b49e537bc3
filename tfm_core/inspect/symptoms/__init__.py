"""The training doctor: what is wrong with a training, since when, and what would help."""
