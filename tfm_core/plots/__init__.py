"""Figures: arrays or frames in, a plotly figure out; nothing is computed about a model here."""
