"""Attention, masks, positions, norms, feed-forward, blocks: they take values, not configs."""
