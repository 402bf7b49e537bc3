"""Clusters: a run is a job of Slurm or Ray."""
