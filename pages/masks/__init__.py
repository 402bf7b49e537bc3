"""The lab of masks."""
