"""What starts the queue's runs: workers of this machine, or jobs of a Ray cluster."""
