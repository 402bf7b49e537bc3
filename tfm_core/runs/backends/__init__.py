"""The back ends of the queue: local workers, Ray Jobs, Slurm; ``backend`` has their interface."""
