"""What decides when a run starts: tickets, claims, limits, and the thread that starts runs."""
