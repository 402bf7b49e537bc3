"""The model as the equations of its papers."""
