"""Models that were trained elsewhere: a Hugging Face folder becomes a model of the engine."""
