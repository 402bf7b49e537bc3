"""One training step: batch, loss, gradients, one weight's update."""
