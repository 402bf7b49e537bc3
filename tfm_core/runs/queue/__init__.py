"""What decides when a run starts: the line, holds, limits, and the thread that starts runs."""
