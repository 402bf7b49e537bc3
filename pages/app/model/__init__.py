"""What pages show of a trained model: answers, curves, beams, steps of the walk."""
