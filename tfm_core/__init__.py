"""The engine: configs, layers, models, tasks, training, runs. It never imports streamlit."""

__version__ = "0.2.0"
