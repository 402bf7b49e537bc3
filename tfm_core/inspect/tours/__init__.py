"""What a guided tour of a run waits for and asks: computed from the run itself."""
