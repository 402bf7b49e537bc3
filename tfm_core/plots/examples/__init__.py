"""Examples: pictures, custom data sets, and what a model gets right and wrong."""
