"""A model that somebody pasted: its sizes, its print or its table of parameters, built here."""
