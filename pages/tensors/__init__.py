"""Tensors by sight."""
