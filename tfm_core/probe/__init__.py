"""What a worker takes of a model while it trains: examples, snapshots, captures, labels."""
