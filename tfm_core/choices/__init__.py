"""What can be chosen: variants, mistakes, settings, presets; no torch."""
