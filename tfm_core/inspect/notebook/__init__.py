"""A model by the sizes that somebody gives: those of a notebook, a call or a config.json."""
