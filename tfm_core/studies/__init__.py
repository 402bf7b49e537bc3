"""Trainings side by side: experiments, good practice, hidden bugs, cures and known findings."""
