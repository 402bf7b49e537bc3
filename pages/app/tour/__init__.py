"""Tours: a bar that leads across pages over one real run, stop by stop."""
