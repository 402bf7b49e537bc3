"""Build and Parameters: the model as diagram, equations, code and tables."""
