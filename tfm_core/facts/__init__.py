"""What is true of a configuration before anything is built: sizes, compute, memory, differences."""
