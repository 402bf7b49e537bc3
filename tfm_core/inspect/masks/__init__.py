"""The lab of masks: what may attend to what, in code, in scores, and the traps."""
