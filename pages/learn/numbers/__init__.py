"""Words become numbers."""
