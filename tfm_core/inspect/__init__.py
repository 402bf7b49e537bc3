"""Looking inside: capture, snapshots, what the axes of an attention map mean."""
