"""What a run leaves behind: snapshots, weights, curves, labels, and what follows from them."""
