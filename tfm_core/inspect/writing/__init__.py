"""A trained model at work: its text token by token, what else it weighed, where it looked."""
