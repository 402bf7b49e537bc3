"""The model as a graph of blocks, and how it is drawn."""
